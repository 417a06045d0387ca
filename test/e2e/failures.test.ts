import t from 'tap';
import { ask, problemOf } from '../helpers/client.ts';
import { type RawScript, RawUpstream, scripts } from '../helpers/raw-upstream.ts';
import { recordOf } from '../helpers/records.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { until } from '../helpers/until.ts';
import { closedPort } from '../proxy/pass-through-server.ts';

/** FACTS.md, "what proves that the upstream did not run", row by row through the sidecar: client, record, retry. */
interface Row {
  readonly upstream: string;
  readonly script?: RawScript;
  /** Instead of a script: nobody we could be connected to. */
  readonly url?: string;
  readonly timeout?: string;
  readonly outcomes?: string;
  readonly status: number;
  /** Of the problem; absent: the client gets the upstream's answer. */
  readonly code?: string;
  readonly record: {
    readonly state: string;
    readonly status: number | null;
    readonly close_framed?: boolean;
  };
  /** What a retry gets; `tried` is the only one that reaches the upstream. */
  readonly retry: 'tried' | 'outcome_unknown' | 'replayed' | 'response_not_retained';
}

const head = (status: string, ...fields: string[]) =>
  `HTTP/1.1 ${status}\r\n${fields.map((field) => `${field}\r\n`).join('')}\r\n`;
const ok = `${head('201 Created', 'Content-Length: 5')}hello`;
const cut = ok.slice(0, -2);
const unframed = `${head('201 Created')}hello`;
/** Half of it is for the connection. */
const timeout = '400ms';

const released = {
  status: 502,
  code: 'upstream_unreachable',
  record: { state: 'failed_retryable', status: null },
  retry: 'tried',
} as const;
const unknown = (status: number | null = null) =>
  ({
    status: 502,
    code: 'upstream_failed',
    record: { state: 'unknown', status },
    retry: 'outcome_unknown',
  }) as const;
const timedOut = (status: number | null = null) =>
  ({ ...unknown(status), status: 504, code: 'upstream_timeout', timeout }) as const;
const stored = (status: number, close_framed = false) =>
  ({ status, record: { state: 'completed', status, close_framed }, retry: 'replayed' }) as const;

const rows: readonly Row[] = [
  { upstream: 'refused the connection', url: `http://127.0.0.1:${await closedPort()}`, ...released },
  { upstream: 'has a name that nobody knows', url: 'http://nobody.invalid:80', ...released },
  {
    upstream: 'speaks no TLS',
    url: 'https:',
    script: { firstBytes: ({ socket }) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n') },
    ...released,
  },
  { upstream: 'accepted, reset at once', script: scripts.resetAtOnce(), ...released },
  { upstream: 'accepted, closed at once', script: scripts.closeAtOnce(), ...unknown() },
  { upstream: 'read the request, then reset', script: scripts.readThenReset(), ...unknown() },
  { upstream: 'read the request, then closed', script: scripts.readThenClose(), ...unknown() },
  { upstream: 'never answered', script: scripts.silent(), ...timedOut() },
  { upstream: 'stalled in the head', script: scripts.answer('HTTP/1.1 201 Cr'), ...timedOut() },
  { upstream: 'stalled in the body', script: scripts.answer(cut), ...timedOut(201) },
  { upstream: 'closed in the body', script: scripts.answerThenClose(cut), ...unknown(201) },
  { upstream: 'reset in the body', script: scripts.answerThenReset(cut), ...unknown(201) },
  {
    upstream: 'left out the last chunk',
    script: scripts.answerThenClose(`${head('201 Created', 'Transfer-Encoding: chunked')}5\r\nhello\r\n`),
    ...unknown(201),
  },
  {
    upstream: 'ended a body without length by closing',
    script: scripts.answerThenClose(unframed),
    ...stored(201, true),
  },
  {
    upstream: 'ended a body without length by closing, where it is about payments',
    script: scripts.answerThenClose(unframed),
    outcomes: 'payments',
    status: 201,
    record: { state: 'unknown', status: 201 },
    retry: 'outcome_unknown',
  },
  {
    upstream: 'ended a 409 by closing, which the route would release, where it is about payments',
    script: scripts.answerThenClose(`${head('409 Conflict', 'Oncegate-Outcome: not-executed')}hello`),
    outcomes: '{ preset: payments, 409: release }',
    status: 409,
    record: { state: 'unknown', status: 409 },
    retry: 'outcome_unknown',
  },
  {
    upstream: 'reset a body without length',
    script: scripts.answerThenReset(unframed),
    ...unknown(201),
  },
  {
    upstream: 'reset a 500 without length, which would be free',
    script: scripts.answerThenReset(`${head('500 Oops')}hello`),
    ...unknown(500),
  },
  {
    upstream: 'sent more than is kept',
    script: scripts.answer(`${head('201 Created', 'Content-Length: 200000')}${'x'.repeat(200_000)}`),
    status: 201,
    record: { state: 'completed', status: 201 },
    retry: 'response_not_retained',
  },
  {
    upstream: 'sent a broken head',
    script: scripts.answer('HTTP/1.1 201 Created\r\nno colon\r\n\r\n'),
    ...unknown(),
  },
  { upstream: 'spoke no HTTP', script: scripts.answer('SSH-2.0-OpenSSH_9.6\r\n'), ...unknown() },
  {
    upstream: 'sent two lengths',
    script: scripts.answer(`${head('201 Created', 'Content-Length: 5', 'Content-Length: 6')}hello`),
    ...unknown(),
  },
  {
    upstream: 'sent less than its length, then closed as announced',
    script: scripts.answerThenClose(`${head('201 Created', 'Connection: close', 'Content-Length: 6')}hello`),
    ...unknown(201),
  },
  {
    upstream: 'sent 204 with a length',
    script: scripts.answer(head('204 No Content', 'Content-Length: 5')),
    ...stored(204),
  },
  {
    upstream: 'sent 304 with a length',
    script: scripts.answer(head('304 Not Modified', 'Content-Length: 5')),
    ...stored(304),
  },
  {
    upstream: 'sent status 600',
    script: scripts.answer(head('600 What', 'Content-Length: 0')),
    ...unknown(),
  },
  {
    upstream: 'sent status 101',
    script: scripts.answer(head('101 Switching', 'Upgrade: x', 'Connection: Upgrade')),
    ...unknown(),
  },
  { upstream: 'answered before it had read the request', script: scripts.answerEarly(ok), ...stored(201) },
  {
    upstream: 'sent hints before its answer',
    script: scripts.answer(`${head('103 Early Hints', 'Link: </a>')}${ok}`),
    ...stored(201),
  },
  { upstream: 'dripped its answer', script: scripts.drip(ok), ...stored(201) },
];

t.test('what the upstream does, what the client, the record and the retry get', async (t) => {
  const upstreams = new Map<Row, RawUpstream>();
  const routes: string[] = [];
  for (const [index, row] of rows.entries()) {
    let { url } = row;
    if (row.script !== undefined) {
      const upstream = await RawUpstream.listen(row.script);
      t.teardown(() => upstream.close());
      upstreams.set(row, upstream);
      url = url === undefined ? upstream.origin : upstream.origin.replace('http:', url);
    }
    const target = `upstream: { url: '${url}', timeout: ${row.timeout ?? '20s'} }`;
    routes.push(`  - { path: /${index}, outcomes: ${row.outcomes ?? 'standard'}, ${target} }`);
  }
  const { dataUrl, databaseUrl } = await sidecar(t, {
    upstream: 'http://127.0.0.1:1',
    config: `defaults: { maxStoredBody: 100kb }\nroutes:\n${routes.join('\n')}`,
  });
  for (const [index, row] of rows.entries()) {
    await t.test(row.upstream, async (t) => {
      const upstream = upstreams.get(row);
      const key = `key-${index}`;
      const send = () => ask(`${dataUrl}/${index}`, { key, body: '{"amount":1}' });
      const first = await send();
      t.equal(first.status, row.status);
      if (row.code !== undefined) t.equal(problemOf(first).code, row.code);
      const record = await recordOf(databaseUrl, key);
      t.match(record, row.record);

      const reached = upstream?.connections.length;
      const lines = upstream?.lines.length;
      const retry = await send();
      if (row.retry === 'tried') {
        t.equal(problemOf(retry).code, row.code);
        t.not((await recordOf(databaseUrl, key))?.attempt, record?.attempt, 'the retry was tried');
        if (reached !== undefined) t.equal(upstream?.connections.length, reached + 1);
        t.same(upstream?.lines ?? [], [], 'no request ever got there');
        return;
      }
      t.same([upstream?.connections.length, upstream?.lines.length], [reached, lines], 'not a byte more');
      if (row.retry !== 'replayed') {
        t.equal(problemOf(retry).code, row.retry);
        return;
      }
      t.equal(retry.headers['idempotency-status'], 'replayed');
      t.same([retry.status, retry.body.toString()], [first.status, first.body.toString()]);
      t.equal(first.body.toString(), row.status === 201 ? 'hello' : '');
    });
  }
});

t.test('an idle connection that is reset as we send: unknown, and not sent again', async (t) => {
  const upstream = await RawUpstream.listen(scripts.resetWhenReused(ok));
  t.teardown(() => upstream.close());
  const { dataUrl, databaseUrl } = await sidecar(t, { upstream: upstream.origin });
  const send = (key: string) => ask(`${dataUrl}/a`, { key, body: '{}' });
  t.equal((await send('first')).status, 201);
  const second = await send('second');
  t.equal(problemOf(second).code, 'upstream_failed');
  t.match(await recordOf(databaseUrl, 'second'), { state: 'unknown', status: null });
  t.equal(upstream.connections.length, 1, 'undici did not try another connection');
  t.equal(problemOf(await send('second')).code, 'outcome_unknown');
  t.equal(upstream.connections.length, 1);
});

t.test('a queue behind a busy connection: whoever is not sent in time provably did not run', async (t) => {
  const upstream = await RawUpstream.listen(scripts.silent());
  t.teardown(() => upstream.close());
  const { dataUrl, databaseUrl } = await sidecar(t, {
    upstream: upstream.origin,
    config: `
upstream: { connections: 1 }
routes: [ { path: /short, upstream: { timeout: ${timeout} } }, { path: /long, upstream: { timeout: 2s } } ]`,
  });
  const long = ask(`${dataUrl}/long`, { key: 'long', body: '{}' });
  await until('the one connection is busy', () => upstream.lines.length === 1);
  const short = await ask(`${dataUrl}/short`, { key: 'short', body: '{}' });
  t.equal(problemOf(short).code, 'upstream_unreachable');
  t.match(await recordOf(databaseUrl, 'short'), { state: 'failed_retryable' });
  t.equal(problemOf(await long).code, 'upstream_timeout');
  t.match(await recordOf(databaseUrl, 'long'), { state: 'unknown' });
  t.same(upstream.lines, ['POST /long HTTP/1.1'], 'it did not leave later either');
});
