import t, { type Test } from 'tap';
import { type Ending, type Outcome, settle } from '../../src/core/settle.ts';
import { UpstreamClient } from '../../src/upstream/client.ts';
import { type RawConnection, type RawScript, RawUpstream, scripts } from '../helpers/raw-upstream.ts';
import { closedPort } from '../proxy/pass-through-server.ts';
import { selfSigned } from './certificate.ts';
import { type Recorder, send, target } from './send.ts';

/** FACTS.md, "undici: what proves that the upstream did not run", row by row over raw sockets. */
interface Row {
  readonly upstream: string;
  readonly script: RawScript;
  readonly ending: Partial<
    Record<'kind' | 'status' | 'timedOut' | 'closeFramed' | 'hasRetryAfter' | 'upstreamSays', unknown>
  >;
  /** Error code (or name, where it has none), where the row ends with an error. */
  readonly code?: string | RegExp;
  readonly standard: Outcome;
  readonly payments: Outcome;
  readonly body?: string;
  readonly timeoutMs?: number;
  /** The upstream resets once the first bytes of the body are read; before that, libuv calls a reset an end. */
  readonly resetOnData?: true;
}

const unknown = { standard: 'unknown', payments: 'unknown' } as const;
const release = { standard: 'release', payments: 'release' } as const;
const store = { standard: 'store', payments: 'store' } as const;
const broken = (status: number | null, timedOut = false) => ({ kind: 'broken', status, timedOut });
const answered = (status: number, closeFramed = false) => ({ kind: 'answered', status, closeFramed });
const head = (status: string, ...fields: string[]) =>
  `HTTP/1.1 ${status}\r\n${fields.map((f) => `${f}\r\n`).join('')}\r\n`;
const ok = `${head('200 OK', 'Content-Length: 5')}hello`;
const shortMs = 100;

const rows: Row[] = [
  {
    upstream: 'accepted, reset at once',
    script: scripts.resetAtOnce(),
    ending: { kind: 'not_started' },
    code: 'ECONNRESET',
    ...release,
  },
  {
    upstream: 'accepted, closed at once',
    script: scripts.closeAtOnce(),
    ending: broken(null),
    code: /^(UND_ERR_SOCKET|ECONNRESET|EPIPE)$/,
    ...unknown,
  },
  {
    upstream: 'read the request, then reset',
    script: scripts.readThenReset(),
    ending: broken(null),
    code: 'ECONNRESET',
    ...unknown,
  },
  {
    upstream: 'read the request, then closed',
    script: scripts.readThenClose(),
    ending: broken(null),
    code: 'UND_ERR_SOCKET',
    ...unknown,
  },
  {
    upstream: 'never answered',
    script: scripts.silent(),
    ending: broken(null, true),
    code: 'timed_out',
    timeoutMs: shortMs,
    ...unknown,
  },
  {
    upstream: 'sent half a head, then stalled',
    script: scripts.answer('HTTP/1.1 200 OK\r\nContent-Le'),
    ending: broken(null, true),
    code: 'timed_out',
    timeoutMs: shortMs,
    ...unknown,
  },
  {
    upstream: 'status seen, body stalled',
    script: scripts.answer(ok.slice(0, -2)),
    ending: broken(200, true),
    code: 'timed_out',
    timeoutMs: shortMs,
    body: 'hel',
    ...unknown,
  },
  {
    upstream: 'status seen, body cut by a close',
    script: scripts.answerThenClose(ok.slice(0, -2)),
    ending: broken(200),
    code: 'UND_ERR_SOCKET',
    body: 'hel',
    ...unknown,
  },
  {
    upstream: 'status seen, body cut by a reset',
    script: scripts.answer(ok.slice(0, -2)),
    resetOnData: true,
    ending: broken(200),
    code: 'ECONNRESET',
    body: 'hel',
    ...unknown,
  },
  {
    upstream: 'status seen, body cut by a reset on its heels',
    script: scripts.answerThenReset(ok.slice(0, -2)),
    ending: broken(200),
    code: /^(UND_ERR_SOCKET|ECONNRESET)$/,
    ...unknown,
  },
  {
    upstream: 'announced its close, then cut the body',
    script: scripts.answerThenClose(`${head('200 OK', 'Connection: close', 'Content-Length: 5')}hel`),
    ending: broken(200),
    code: 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
    ...unknown,
  },
  {
    upstream: 'chunked body without its last chunk, closed',
    script: scripts.answerThenClose(
      `${head('200 OK', 'Connection: close', 'Transfer-Encoding: chunked')}5\r\nhello\r\n`,
    ),
    ending: broken(200),
    code: 'HTTPParserError',
    ...unknown,
  },
  {
    upstream: 'body without length, ended by close',
    script: scripts.answerThenClose(`${head('200 OK')}hello`),
    ending: answered(200, true),
    body: 'hello',
    standard: 'store',
    payments: 'unknown',
  },
  {
    upstream: 'body without length, ended by reset',
    script: scripts.answer(`${head('200 OK')}hello`),
    resetOnData: true,
    ending: broken(200),
    code: 'answer_cut',
    body: 'hello',
    ...unknown,
  },
  {
    upstream: 'body without length, reset on its heels',
    script: scripts.answerThenReset(`${head('200 OK')}hello`),
    ending: broken(200),
    code: 'answer_cut',
    ...unknown,
  },
  {
    upstream: '500 without length, reset on its heels: not free',
    script: scripts.answerThenReset(`${head('500 Oops')}hello`),
    ending: broken(500),
    code: 'answer_cut',
    ...unknown,
  },
  {
    upstream: 'body without length, reset before its first byte',
    script: scripts.answerThenReset(head('200 OK')),
    ending: broken(200),
    code: 'answer_cut',
    body: '',
    ...unknown,
  },
  {
    upstream: 'body without length, closed before its first byte',
    script: scripts.answerThenClose(head('200 OK')),
    ending: answered(200, true),
    body: '',
    standard: 'store',
    payments: 'unknown',
  },
  {
    upstream: '429 without length, ended by close',
    script: scripts.answerThenClose(`${head('429 Slow', 'Oncegate-Outcome: not-executed')}hello`),
    ending: answered(429, true),
    body: 'hello',
    standard: 'release',
    payments: 'unknown',
  },
  {
    upstream: 'transfer coding that is not chunked, reset on its heels',
    script: scripts.answerThenReset(`${head('200 OK', 'Transfer-Encoding: gzip')}hello`),
    ending: broken(200),
    code: 'answer_cut',
    ...unknown,
  },
  {
    upstream: 'transfer coding that is not chunked, ended by close',
    script: scripts.answerThenClose(`${head('200 OK', 'Transfer-Encoding: gzip')}hello`),
    ending: answered(200, true),
    body: 'hello',
    standard: 'store',
    payments: 'unknown',
  },
  {
    upstream: 'broken header',
    script: scripts.answer('HTTP/1.1 200 OK\r\nBad Header\r\n\r\n'),
    ending: broken(null),
    code: 'HTTPParserError',
    ...unknown,
  },
  {
    upstream: 'no HTTP at all',
    script: scripts.answer('SSH-2.0-OpenSSH_9.6\r\n'),
    ending: broken(null),
    code: 'HTTPParserError',
    ...unknown,
  },
  {
    upstream: 'two different lengths',
    script: scripts.answer(`${head('200 OK', 'Content-Length: 5', 'Content-Length: 6')}hello!`),
    ending: broken(null),
    code: /^(HTTPParserError|UND_ERR_RES_CONTENT_LENGTH_MISMATCH)$/,
    ...unknown,
  },
  {
    upstream: 'length and chunked together',
    script: scripts.answer(`${head('200 OK', 'Content-Length: 5', 'Transfer-Encoding: chunked')}0\r\n\r\n`),
    ending: broken(null),
    code: /^(HTTPParserError|UND_ERR_RES_CONTENT_LENGTH_MISMATCH)$/,
    ...unknown,
  },
  {
    upstream: 'head over 64 kB',
    script: scripts.answer(head('200 OK', `X: ${'a'.repeat(70_000)}`, 'Content-Length: 0')),
    ending: broken(null),
    code: 'UND_ERR_HEADERS_OVERFLOW',
    ...unknown,
  },
  {
    upstream: 'over 1000 header fields',
    script: scripts.answer(head('200 OK', ...new Array<string>(1_000).fill('X: y'), 'Content-Length: 0')),
    ending: broken(200),
    code: 'head_too_large',
    ...unknown,
  },
  {
    upstream: '204',
    script: scripts.answer(head('204 No Content')),
    ending: answered(204),
    body: '',
    ...store,
  },
  {
    upstream: '204 with Content-Length',
    script: scripts.answer(head('204 No Content', 'Content-Length: 5')),
    ending: answered(204),
    body: '',
    ...store,
  },
  {
    upstream: '304 with Content-Length',
    script: scripts.answer(head('304 Not Modified', 'Content-Length: 5')),
    ending: answered(304),
    body: '',
    ...store,
  },
  ...['099', '600', '999'].map((status) => ({
    upstream: `status ${status}`,
    script: scripts.answer(`${head(`${status} Odd`, 'Content-Length: 5')}hello`),
    ending: broken(Number(status)),
    code: 'status_invalid',
    ...unknown,
  })),
  {
    upstream: 'status of four digits',
    script: scripts.answer(`${head('2000 Odd', 'Content-Length: 5')}hello`),
    ending: broken(null),
    code: 'HTTPParserError',
    ...unknown,
  },
  {
    upstream: '101 with Upgrade',
    script: scripts.answer(head('101 Switching Protocols', 'Connection: upgrade', 'Upgrade: websocket')),
    ending: broken(null),
    code: 'UND_ERR_SOCKET',
    ...unknown,
  },
  {
    upstream: '101 without Upgrade',
    script: scripts.answer(head('101 Switching Protocols')),
    ending: broken(101),
    code: 'status_invalid',
    ...unknown,
  },
  {
    // RFC 9110 would have us ignore it; undici does not, and unknown is the safe side.
    upstream: '100 that nobody asked for, then an answer',
    script: scripts.answer(head('100 Continue') + ok),
    ending: broken(null),
    code: 'UND_ERR_SOCKET',
    ...unknown,
  },
  {
    upstream: '102 and 103, then an answer',
    script: scripts.answer(
      head('102 Processing') + head('103 Early Hints', 'Link: </a>', 'Retry-After: 1') + ok,
    ),
    ending: { ...answered(200), hasRetryAfter: false },
    body: 'hello',
    ...store,
  },
  {
    upstream: '103, then a close',
    script: scripts.answerThenClose(head('103 Early Hints')),
    ending: broken(null),
    code: 'UND_ERR_SOCKET',
    ...unknown,
  },
  {
    upstream: 'answered byte by byte',
    script: scripts.drip(ok),
    ending: answered(200),
    body: 'hello',
    ...store,
  },
  {
    upstream: 'answered chunked, with trailers',
    script: scripts.answer(
      `${head('201 Created', 'Transfer-Encoding: chunked', 'Trailer: Oncegate-Outcome')}5\r\nhello\r\n0\r\nOncegate-Outcome: not-executed\r\n\r\n`,
    ),
    ending: { ...answered(201), upstreamSays: null },
    body: 'hello',
    ...store,
  },
  {
    upstream: '503 with Retry-After',
    script: scripts.answer(head('503 Busy', 'RETRY-AFTER: 1', 'Content-Length: 0')),
    ending: { ...answered(503), hasRetryAfter: true },
    standard: 'release',
    payments: 'unknown',
  },
  {
    upstream: 'its own word',
    script: scripts.answer(head('500 Oops', 'oncegate-OUTCOME: Executed', 'Content-Length: 0')),
    ending: { ...answered(500), upstreamSays: 'executed' },
    ...store,
  },
  {
    upstream: 'its own word twice, the same',
    script: scripts.answer(
      head(
        '500 Oops',
        'Oncegate-Outcome: not-executed',
        'Oncegate-Outcome: not-executed',
        'Content-Length: 0',
      ),
    ),
    ending: { upstreamSays: 'not-executed' },
    ...release,
  },
  {
    upstream: 'its own word twice, contradicting itself',
    script: scripts.answer(
      head('200 OK', 'Oncegate-Outcome: executed', 'Oncegate-Outcome: not-executed', 'Content-Length: 0'),
    ),
    ending: { upstreamSays: 'unknown' },
    ...unknown,
  },
  {
    upstream: 'its own word as a list that contradicts itself',
    script: scripts.answer(head('200 OK', 'Oncegate-Outcome: executed, not-executed', 'Content-Length: 0')),
    ending: { upstreamSays: 'unknown' },
    ...unknown,
  },
];

for (const row of rows) {
  t.test(row.upstream, async (t) => {
    const upstream = await RawUpstream.listen(row.script);
    const client = new UpstreamClient(target(upstream.origin));
    t.teardown(async () => {
      await client.destroy();
      await upstream.close();
    });
    const { sink, ended } = send(client, row.timeoutMs === undefined ? {} : { timeoutMs: row.timeoutMs });
    if (row.resetOnData) {
      sink.afterData = () => {
        upstream.connections[0]?.socket.resetAndDestroy();
        return true;
      };
    }
    expectEnding(t, await ended, row, sink);
    if (row.ending.kind === 'not_started') t.equal(upstream.bytes, 0, 'not one byte came');
    t.equal(sink.endings.length, 1, 'one end');
  });
}

function expectEnding(t: Test, ending: Ending, row: Omit<Row, 'script' | 'upstream'>, sink: Recorder): void {
  t.match(ending, row.ending);
  t.equal('error' in ending, row.code !== undefined, 'an error where one is expected');
  if ('error' in ending && row.code !== undefined)
    t.match((ending.error as NodeJS.ErrnoException).code ?? ending.error.name, row.code);
  if (row.body !== undefined) t.equal(sink.body, row.body);
  t.equal(settle(ending, { preset: 'standard', overrides: {} }), row.standard, 'standard');
  t.equal(settle(ending, { preset: 'payments', overrides: {} }), row.payments, 'payments');
}

for (const [how, end, orderly] of [
  ['ended', ({ socket }: RawConnection) => socket.end(), true],
  // Node reports it like the one above: what it cannot tell is as a close without TLS, and never an answer to payments.
  ['closed without close_notify', ({ tcp }: RawConnection) => tcp.end(), true],
  ['reset', ({ tcp }: RawConnection) => tcp.resetAndDestroy(), false],
] as const) {
  t.test(`body without length over TLS, ${how}`, async (t) => {
    const pem = selfSigned('DNS:localhost');
    const upstream = await RawUpstream.listen(
      {
        requested: (connection) =>
          void connection.socket.write(`${head('200 OK')}hello`, () => end(connection)),
      },
      { key: pem, cert: pem },
    );
    const client = new UpstreamClient(target(`https://localhost:${upstream.port}`), { ca: pem });
    t.teardown(async () => {
      await client.destroy();
      await upstream.close();
    });
    const { sink, ended } = send(client);
    const row = orderly
      ? ({ ending: answered(200, true), standard: 'store', payments: 'unknown', body: 'hello' } as const)
      : { ending: broken(200), code: 'answer_cut', ...unknown };
    expectEnding(t, await ended, row, sink);
  });
}

t.test('refused the connection', async (t) => {
  const client = new UpstreamClient(target(`http://127.0.0.1:${await closedPort()}`));
  t.teardown(() => client.destroy());
  const { sink, ended } = send(client);
  expectEnding(t, await ended, { ending: { kind: 'not_started' }, code: 'ECONNREFUSED', ...release }, sink);
});

t.test('unknown host', async (t) => {
  const client = new UpstreamClient(target('http://no-such-host.invalid'));
  t.teardown(() => client.destroy());
  const { sink, ended } = send(client);
  expectEnding(
    t,
    await ended,
    { ending: { kind: 'not_started' }, code: /^(ENOTFOUND|EAI_AGAIN)$/, ...release },
    sink,
  );
});

t.test('an idle keep-alive socket was reset as we sent', async (t) => {
  const upstream = await RawUpstream.listen(scripts.resetWhenReused(ok));
  const client = new UpstreamClient(target(upstream.origin, 1));
  t.teardown(async () => {
    await client.destroy();
    await upstream.close();
  });
  t.match(await send(client).ended, { kind: 'answered' });
  const { sink, ended } = send(client);
  expectEnding(t, await ended, { ending: broken(null), code: 'ECONNRESET', ...unknown }, sink);
  t.equal(upstream.connections.length, 1, 'it was the kept connection, and nothing was sent again');
});

t.test('an idle keep-alive socket was closed before we sent', async (t) => {
  const upstream = await RawUpstream.listen({
    requested: ({ socket }, _nth, _request) => void socket.end(ok),
  });
  const client = new UpstreamClient(target(upstream.origin, 1));
  t.teardown(async () => {
    await client.destroy();
    await upstream.close();
  });
  t.match(await send(client).ended, { kind: 'answered' });
  t.match(
    await send(client).ended,
    { kind: 'answered' },
    'a new connection, for nothing was started on the old one',
  );
  t.same(
    upstream.connections.map((c) => c.requests.length),
    [1, 1],
  );
});

t.test('answered before it had read the whole request', async (t) => {
  const upstream = await RawUpstream.listen(scripts.answerEarly(ok));
  const client = new UpstreamClient(target(upstream.origin, 1));
  t.teardown(async () => {
    await client.destroy();
    await upstream.close();
  });
  const { sink, ended } = send(client, { body: Buffer.alloc(8 * 1024 * 1024, 'b') });
  expectEnding(t, await ended, { ending: answered(200), body: 'hello', ...store }, sink);
});
