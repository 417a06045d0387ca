import t from 'tap';
import { RawUpstream } from '../helpers/raw-upstream.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { exchange } from '../proxy/pass-through-server.ts';

/** The same request and the same answer, guarded and passed through: what differs is listed here, and why in docs/how-it-works.md. */

type Fields = readonly (readonly [name: string, value: string])[];

/** Lower-case names: those of passed-through answers are. The order of different names says nothing (RFC 9110, 5.3). */
function fieldsOf(head: string): Fields {
  return head
    .split('\r\n')
    .slice(1)
    .filter((line) => line !== '')
    .map((line) => {
      const at = line.indexOf(':');
      return [line.slice(0, at).toLowerCase(), line.slice(at + 1).trim()] as const;
    });
}

function without(fields: Fields, names: readonly string[]): string[] {
  return fields
    .filter(([name]) => !names.includes(name))
    .map(([name, value]) => `${name}: ${value}`)
    .sort();
}

/** To the upstream, on guarded requests alone. */
const addedWhenGuarded = ['oncegate-attempt', 'oncegate-epoch', 'accept-encoding'];
/** To the client, on guarded requests alone. */
const saidWhenGuarded = ['idempotency-status', 'idempotency-expires'];
/** Made new for each request. */
const ownId = ['x-request-id'];

interface Sent {
  readonly name: string;
  readonly fields?: readonly string[];
  readonly framing?: string;
  readonly body?: string;
}

const requests: readonly Sent[] = [
  { name: 'nothing special' },
  {
    name: 'hop-by-hop fields',
    fields: ['Keep-Alive: timeout=5', 'Proxy-Connection: keep-alive', 'TE: trailers'],
  },
  { name: 'Forwarded', fields: ['Forwarded: for=6.6.6.6;proto=https;host=evil', 'FORWARDED: for=7.7.7.7'] },
  {
    name: 'X-Forwarded-*',
    fields: [
      'X-Forwarded-For: 6.6.6.6',
      'X-Forwarded-Proto: https',
      'X-Forwarded-Host: evil',
      'X-Forwarded-Port: 1',
    ],
  },
  { name: 'variants of these', fields: ['X_Forwarded_For: 6.6.6.6', 'For-Warded: x', 'X.Request.Id: y'] },
  { name: 'Via', fields: ['Via: 1.1 other'] },
  { name: 'Expect', fields: ['Expect: 100-continue'] },
  {
    name: 'Upgrade',
    fields: ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk'],
  },
  {
    name: 'Oncegate-*',
    fields: ['Oncegate-Attempt: forged', 'Oncegate_Epoch: 9', 'Oncegate-Outcome: executed'],
  },
  { name: 'X-Request-Id', fields: ['X-Request-Id: mine'] },
  {
    name: 'fields that Connection names',
    fields: ['Connection: X-Hop, Authorization', 'X-Hop: 1', 'Authorization: x'],
  },
  { name: 'fields sent twice', fields: ['X-Two: 1', 'X-Two: 2', 'Cookie: a=1', 'Cookie: b=2'] },
  { name: 'an empty field', fields: ['X-Empty:', 'Authorization:'] },
  { name: 'traceparent', fields: ['traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'] },
  {
    name: 'trailers',
    fields: ['Trailer: X-Last'],
    framing: 'Transfer-Encoding: chunked',
    body: '5\r\nhello\r\n0\r\nX-Last: 1\r\n\r\n',
  },
];

const ok = 'HTTP/1.1 200 OK\r\nDate: Tue, 01 Jan 2030 00:00:00 GMT\r\nContent-Length: 2\r\n\r\nok';
const answers: Readonly<Record<string, string>> = {
  'nothing special': ok,
  '204': 'HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n',
  '204 with a length': 'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n',
  '304 with a length': 'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\nContent-Length: 5\r\n\r\n',
  '205 with a length': 'HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n',
  'hints before it': `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${ok}`,
  'cookies, and fields sent twice':
    'HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nX-Two: 1\r\nX-Two: 2\r\nContent-Length: 2\r\n\r\nok',
  'hop-by-hop fields':
    'HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nKeep-Alive: timeout=99\r\nX-Hop: 1\r\nProxy-Connection: x\r\nTE: x\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nok',
  'our names':
    'HTTP/1.1 200 OK\r\nOncegate-Outcome: executed\r\nX-Request-Id: theirs\r\nContent-Length: 2\r\n\r\nok',
  trailers:
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Last\r\n\r\n2\r\nok\r\n0\r\nX-Last: 1\r\n\r\n',
  'Via and Server': 'HTTP/1.1 200 OK\r\nVia: 1.0 x\r\nServer: y\r\nContent-Length: 2\r\n\r\nok',
};

t.test('guarded and passed through', async (t) => {
  let next = ok;
  const upstream = await RawUpstream.listen({
    // The chunks of a body are cut like a request of their own.
    requested: ({ socket }, _nth, { head }) =>
      void (head.startsWith('POST ') && socket.write(next, 'latin1')),
  });
  t.teardown(() => upstream.close());
  const { dataUrl } = await sidecar(t, {
    upstream: upstream.origin,
    config: 'routes: [ { path: /passed, mode: off } ]',
  });
  const port = Number(new URL(dataUrl).port);
  let keys = 0;
  const heads = () =>
    upstream.connections
      .flatMap(({ requests }) => requests.map(({ head }) => head))
      .filter((head) => head.startsWith('POST '));
  /** What the upstream saw, and what the client. */
  const through = async (path: string, { fields = [], framing, body = 'hello' }: Omit<Sent, 'name'>) => {
    const before = heads().length;
    const head = [
      `POST ${path} HTTP/1.1`,
      'Host: shop.example',
      'Connection: close',
      `Idempotency-Key: key-${Math.floor(keys++ / 2)}`,
      framing ?? `Content-Length: ${body.length}`,
      ...fields,
    ];
    const answer = await exchange(t, port, `${head.join('\r\n')}\r\n\r\n${body}`);
    t.equal(heads().length, before + 1, `${path}: sent once`);
    return answer.replace(/^HTTP\/1\.1 100 Continue\r\n\r\n/, '');
  };
  const newest = (path: string) =>
    heads()
      .filter((head) => head.startsWith(`POST ${path} `))
      .at(-1) ?? '';

  for (const row of requests) {
    next = ok;
    await through('/guarded', row);
    await through('/passed', row);
    const guarded = fieldsOf(newest('/guarded'));
    const passed = fieldsOf(newest('/passed'));
    const leaveOut = row.name === 'X-Request-Id' ? [...addedWhenGuarded] : [...addedWhenGuarded, ...ownId];
    // Read whole before it is forwarded: so it has a length.
    if (row.framing !== undefined) leaveOut.push('content-length', 'transfer-encoding');
    t.same(without(guarded, leaveOut), without(passed, leaveOut), `${row.name}: the upstream sees the same`);
    t.notMatch(newest('/guarded') + newest('/passed'), /6\.6\.6\.6|7\.7\.7\.7|evil|forged|x-last/i, row.name);
  }

  for (const [name, bytes] of Object.entries(answers)) {
    next = bytes;
    const guarded = await through('/guarded', {});
    const passed = await through('/passed', {});
    const leaveOut = [...saidWhenGuarded, ...ownId];
    // Ours where the upstream sent none.
    if (!bytes.includes('Date:')) leaveOut.push('date');
    // Known only of one that was read whole.
    if (bytes.includes('chunked')) leaveOut.push('content-length', 'transfer-encoding');
    const [guardedHead = '', passedHead = ''] = [guarded, passed].map((text) => text.split('\r\n\r\n', 1)[0]);
    t.equal(guardedHead.split('\r\n')[0], passedHead.split('\r\n')[0], name);
    t.same(
      without(fieldsOf(guardedHead), leaveOut),
      without(fieldsOf(passedHead), leaveOut),
      `${name}: the client sees the same`,
    );
    for (const head of [guardedHead, passedHead]) {
      t.match(head, /\r\ndate: /i, `${name}: a Date`);
      t.notMatch(head, /oncegate|theirs|x-hop|x-last|timeout=99/i, name);
    }
  }
});
