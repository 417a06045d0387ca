import type { IncomingMessage } from 'node:http';
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import t, { type Test } from 'tap';
import { WebSocket } from 'undici';
import { RawUpstream } from '../helpers/raw-upstream.ts';
import { until } from '../helpers/until.ts';
import { type TestUpstream, testUpstream } from '../helpers/upstream.ts';
import { closedPort, connect, exchange, passThrough, seen, target } from './pass-through-server.ts';

/** Of the `ws` package, which http-proxy brings and which has no types here. */
interface ServerSide {
  on(event: 'message', listener: (data: Buffer, isBinary: boolean) => void): void;
  on(event: 'close', listener: (code: number, reason: Buffer) => void): void;
  send(data: Buffer, options: { binary: boolean }): void;
  close(code: number, reason: string): void;
  terminate(): void;
  readonly protocol: string;
}
interface Handler {
  handleUpgrade(req: IncomingMessage, socket: Socket, head: Buffer, done: (side: ServerSide) => void): void;
}
type Made = new (options: {
  noServer: true;
  handleProtocols?: (offered: Set<string>) => string | false;
}) => Handler;
const { WebSocketServer } = createRequire(import.meta.url)('ws') as { WebSocketServer: Made };

interface EchoUpstream {
  readonly upstream: TestUpstream;
  readonly url: string;
  readonly asked: IncomingMessage[];
  readonly closed: [code: number, reason: string][];
  readonly sides: ServerSide[];
}

/** Sends back what it gets; picks the subprotocol `v2`. */
async function echoUpstream(t: Test, greeting = ''): Promise<EchoUpstream> {
  const upstream = await testUpstream(t);
  const made = { upstream, url: upstream.url, asked: [], closed: [], sides: [] } as EchoUpstream;
  const handler = new WebSocketServer({
    noServer: true,
    handleProtocols: (offered) => (offered.has('v2') ? 'v2' : false),
  });
  upstream.server.on('upgrade', (req: IncomingMessage, socket: Socket, head: Buffer) => {
    made.asked.push(req);
    handler.handleUpgrade(req, socket, head, (side) => {
      made.sides.push(side);
      if (greeting !== '') side.send(Buffer.from(greeting), { binary: false });
      side.on('message', (data, binary) => side.send(data, { binary }));
      side.on('close', (code, reason) => made.closed.push([code, reason.toString()]));
    });
  });
  t.teardown(() => {
    for (const side of made.sides) side.terminate();
  });
  return made;
}

interface Client {
  readonly socket: WebSocket;
  readonly opened: Promise<void>;
  readonly closed: Promise<{ code: number; reason: string }>;
  next(): Promise<unknown>;
}

function open(t: Test, url: string, protocols: string[] = [], headers: Record<string, string> = {}): Client {
  const socket = new WebSocket(url.replace('http', 'ws'), { protocols, headers });
  socket.binaryType = 'arraybuffer';
  t.teardown(() => socket.close());
  const arrived: unknown[] = [];
  const waiting: ((data: unknown) => void)[] = [];
  socket.addEventListener('message', ({ data }) => {
    const waiter = waiting.shift();
    if (waiter === undefined) arrived.push(data);
    else waiter(data);
  });
  const opened = new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => resolve());
    socket.addEventListener('error', (event) => reject(event.error));
  });
  opened.catch(() => {});
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.addEventListener('close', ({ code, reason }) => resolve({ code, reason }));
  });
  const next = () =>
    new Promise<unknown>((resolve) => {
      if (arrived.length > 0) resolve(arrived.shift());
      else waiting.push(resolve);
    });
  return { socket, opened, closed, next };
}

const handshake =
  'Host: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';

t.test('messages, subprotocol, target and headers pass', async (t) => {
  const upstream = await echoUpstream(t, 'welcome');
  const { url } = await passThrough(t, [target(upstream.url)]);
  const client = open(t, `${url}/chat%2Froom//1?token=a%zz&b`, ['v1', 'v2'], {
    Authorization: 'Bearer x',
    Cookie: 'a=1',
    'X-Forwarded-For': '6.6.6.6',
  });
  await client.opened;
  t.equal(client.socket.protocol, 'v2', 'the upstream chooses');
  t.equal(await client.next(), 'welcome');
  client.socket.send('hello');
  t.equal(await client.next(), 'hello');
  const large = Buffer.alloc(3 << 20, 7);
  client.socket.send(large);
  t.ok(Buffer.from((await client.next()) as ArrayBuffer).equals(large));
  const asked = upstream.asked[0] as IncomingMessage;
  t.equal(asked.url, '/chat%2Froom//1?token=a%zz&b');
  t.match(asked.headers, {
    authorization: 'Bearer x',
    cookie: 'a=1',
    host: new URL(url).host,
    'x-forwarded-for': '127.0.0.1',
    'x-request-id': 'request-1',
    'sec-websocket-protocol': /v1, ?v2/,
  });
});

t.test('closes pass both ways', async (t) => {
  const upstream = await echoUpstream(t);
  const { url } = await passThrough(t, [target(upstream.url)]);
  const leaving = open(t, url);
  await leaving.opened;
  leaving.socket.close(4001, 'bye');
  t.match(await leaving.closed, { code: 4001, reason: 'bye' });
  while (upstream.closed.length === 0) await new Promise((resolve) => setImmediate(resolve));
  t.strictSame(upstream.closed, [[4001, 'bye']]);

  const dismissed = open(t, url);
  await dismissed.opened;
  upstream.sides.at(-1)?.close(4002, 'enough');
  t.match(await dismissed.closed, { code: 4002, reason: 'enough' });

  const dropped = open(t, url);
  await dropped.opened;
  upstream.sides.at(-1)?.terminate();
  t.match(await dropped.closed, { code: 1006 });
});

t.test('a client that vanishes is missed by the upstream', async (t) => {
  const upstream = await echoUpstream(t);
  const { port } = await passThrough(t, [target(upstream.url)]);
  const socket = await connect(t, port);
  const answered = seen(socket, (text) => text.includes('\r\n\r\n'));
  socket.write(`GET / HTTP/1.1\r\n${handshake}\r\n`);
  t.match(await answered, /^HTTP\/1\.1 101 .*upgrade: websocket\r\n.*x-request-id: request-1\r\n/s);
  socket.resetAndDestroy();
  while (upstream.closed.length === 0) await new Promise((resolve) => setImmediate(resolve));
  t.equal(upstream.closed[0]?.[0], 1006);
});

t.test('what the client sends behind its handshake is not lost', async (t) => {
  const upstream = await echoUpstream(t);
  const { port } = await passThrough(t, [target(upstream.url)]);
  const socket = await connect(t, port);
  const echoed = seen(socket, (text) => text.endsWith('\x81\x02hi'));
  // A masked text frame with an empty mask.
  socket.write(Buffer.from(`GET / HTTP/1.1\r\n${handshake}\r\n\x81\x82\0\0\0\0hi`, 'latin1'));
  t.match(await echoed, /^HTTP\/1\.1 101 /);
});

t.test("a refusal is the upstream's own", async (t) => {
  const upstream = await RawUpstream.listen({
    requested: ({ socket }) =>
      void socket.write(
        'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 5\r\n\r\nlogin',
      ),
  });
  t.teardown(() => upstream.close());
  const { url, port } = await passThrough(t, [target(upstream.origin)]);
  const answer = await exchange(t, port, `GET /ws HTTP/1.1\r\n${handshake}\r\n`);
  t.match(answer, /^HTTP\/1\.1 401 Unauthorized\r\n.*www-authenticate: Bearer\r\n.*\r\n\r\nlogin$/s);
  t.match(upstream.connections[0]?.requests[0]?.head, /upgrade: websocket/i);
  const client = open(t, url);
  await t.rejects(client.opened);
  t.match(await client.closed, { code: 1006 });
});

t.test('an upstream that is not there, breaks off, or stays silent', async (t) => {
  const { port } = await passThrough(t, [target(`http://127.0.0.1:${await closedPort()}`)]);
  const refused = await exchange(t, port, `GET /ws HTTP/1.1\r\n${handshake}\r\n`);
  t.match(refused, /^HTTP\/1\.1 502 .*application\/problem\+json.*upstream_unreachable/s);
  const silent = await RawUpstream.listen({});
  const breaking = await RawUpstream.listen({ requested: ({ socket }) => void socket.resetAndDestroy() });
  t.teardown(() => Promise.all([silent.close(), breaking.close()]));
  for (const [upstream, answer] of [
    [silent, /^HTTP\/1\.1 504 .*upstream_timeout/s],
    [breaking, /^HTTP\/1\.1 502 .*upstream_failed/s],
  ] as const) {
    const { port } = await passThrough(t, [target(upstream.origin, { timeoutMs: 200 })]);
    t.match(await exchange(t, port, `GET /ws HTTP/1.1\r\n${handshake}\r\n`), answer);
    t.equal(upstream.lines.length, 1);
  }
});

t.test('each goes to the upstream of its route, and takes none of its pool', async (t) => {
  const [a, b] = [await echoUpstream(t, 'from a'), await echoUpstream(t, 'from b')];
  b.upstream.respond = (_one, res) => void res.end('plain');
  const [toA, toB] = [target(a.url), target(b.url, { connections: 1, timeoutMs: 500 })];
  const { url, port } = await passThrough(t, [toA, toB], (_method, path) =>
    path.startsWith('/b') ? toB : toA,
  );
  t.equal(await open(t, `${url}/a`).next(), 'from a');
  const clients = [open(t, `${url}/b/1`), open(t, `${url}/b/2`)];
  for (const client of clients) t.equal(await client.next(), 'from b');
  const answer = await exchange(t, port, 'GET /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  t.match(answer, /\r\n\r\nplain$/);
  // Far past the timeout: silence is no fault of a WebSocket.
  await new Promise((resolve) => setTimeout(resolve, 1_600));
  clients[0]?.socket.send('still here');
  t.equal(await clients[0]?.next(), 'still here');
});

t.test('the end of the server ends them', async (t) => {
  const upstream = await echoUpstream(t);
  const { url, app } = await passThrough(t, [target(upstream.url)]);
  const client = open(t, url);
  await client.opened;
  await app.close();
  t.match(await client.closed, { code: 1006 });
});

t.test('an upgrade that is answered otherwise ends with its client', async (t) => {
  let isOpen = false;
  const upstream = await testUpstream(t, (_one, res) => {
    isOpen = true;
    res.once('close', () => (isOpen = false));
    // A stream that is silent from then on.
    res.write('begun');
  });
  const { port } = await passThrough(t, [target(upstream.url)]);
  const socket = await connect(t, port);
  socket.write('GET /events HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  await seen(socket, (text) => text.includes('begun'));
  t.ok(isOpen);
  socket.end();
  await until('the upstream is let go', () => !isOpen);
});
