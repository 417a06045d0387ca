import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect as netConnect, type Socket } from 'node:net';
import t, { type Test } from 'tap';
import { readBody } from '../../src/proxy/body.ts';
import { Budget } from '../../src/proxy/budget.ts';
import { ask, problemOf } from '../helpers/client.ts';
import { RawUpstream } from '../helpers/raw-upstream.ts';
import { until } from '../helpers/until.ts';
import { testUpstream } from '../helpers/upstream.ts';
import { connect, passThrough, seen, target } from './pass-through-server.ts';

const connections = 2;
/** So small that a test need not wait, and so large that a busy machine keeps it. */
const pace = { windowMs: 500, leastBytes: 100 };
const never = { windowMs: 1_000_000, leastBytes: 100 };
const stallMs = 500;

/** One that says so much of an upload and then nothing. */
async function uploading(t: Test, port: number, sent: number, length = 200_000): Promise<Socket> {
  const socket = await connect(t, port);
  const head = `PUT /slow HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`;
  socket.write(head + 'x'.repeat(sent));
  return socket;
}

async function readingNothing(t: Test, port: number, path: string): Promise<Socket> {
  const socket = await connect(t, port);
  socket.pause();
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
  return socket;
}

/** Whether so many bytes come before the connection closes. */
function readsAtLeast(socket: Socket, bytes: number): Promise<boolean> {
  let left = bytes;
  return new Promise((resolve) => {
    socket.on('data', (chunk) => {
      left -= chunk.length;
      if (left <= 0) resolve(true);
    });
    socket.once('close', () => resolve(false));
    socket.resume();
  });
}

t.test('uploads that trickle in hold no connection to the upstream', async (t) => {
  const upstream = await testUpstream(t);
  const { port, url, budget } = await passThrough(
    t,
    [target(upstream.url, { connections })],
    undefined,
    undefined,
    { pace: never },
  );
  const sockets: Socket[] = [];
  for (let i = 0; i < 3 * connections; i += 1) sockets.push(await uploading(t, port, 50_000));
  await until('their bytes are here', () => budget.heldBytes === 3 * connections * 50_000);
  t.equal((await ask(`${url}/quick`, { method: 'GET' })).status, 201);
  const [first] = sockets as [Socket];
  const answered = seen(first, (text) => text.includes('random'));
  first.write('y'.repeat(150_000));
  t.match(await answered, /^HTTP\/1\.1 201 /, 'one that goes on is sent');
  t.equal(upstream.executions.at(-1)?.body.toString(), 'x'.repeat(50_000) + 'y'.repeat(150_000));
  for (const socket of sockets) socket.destroy();
  await until('nothing is held', () => budget.heldBytes === 0);
});

t.test('an upload that comes too slowly is refused, or cut once it was begun', async (t) => {
  const upstream = await testUpstream(t);
  const { port, url } = await passThrough(t, [target(upstream.url, { connections })], undefined, undefined, {
    pace,
  });
  const begun = await Promise.all([uploading(t, port, 100_000), uploading(t, port, 100_000)]);
  const cut = begun.map((socket) => once(socket, 'close'));
  const early = await uploading(t, port, 50);
  const refused = seen(early, (text) => text.endsWith('}'));
  t.match(await refused, /^HTTP\/1\.1 400 .*connection: close.*"body_incomplete"/is);
  t.match(
    await refused,
    /"message":"The body came too slowly\. Nothing [^"]*request again\."/,
    'no word of a key',
  );
  await Promise.all(cut);
  t.equal((await ask(`${url}/quick`, { method: 'GET' })).status, 201, 'their connections are free again');
  t.same(
    upstream.executions.map((one) => one.url),
    ['/quick'],
  );
});

t.test('uploads that were sent and then trickle make way for those that wait', async (t) => {
  const upstream = await testUpstream(t);
  const { port, url } = await passThrough(t, [target(upstream.url, { connections })], undefined, undefined, {
    pace: never,
  });
  const sockets = await Promise.all([uploading(t, port, 100_000), uploading(t, port, 100_000)]);
  const cut = sockets.map((socket) => once(socket, 'close'));
  // One for each: a single one would need only the slower of them to go.
  const quick = await Promise.all([1, 2].map(() => ask(`${url}/quick`, { method: 'GET' })));
  for (const { status } of quick) t.equal(status, 201);
  await Promise.race(cut);
});

t.test('clients that do not read make way for those that wait, and only for them', async (t) => {
  const large = Buffer.alloc(30_000_000, 'x');
  const upstream = await testUpstream(t, ({ url }, res) => void res.end(url === '/large' ? large : 'ok'));
  const { port, url } = await passThrough(t, [target(upstream.url, { connections })], undefined, undefined, {
    stallMs: 1_000_000,
  });
  const sockets = await Promise.all([1, 2].map(() => readingNothing(t, port, '/large')));
  await upstream.received(2);
  t.equal((await ask(`${url}/quick`, { method: 'GET' })).status, 200);
  const wholes = await Promise.all(sockets.map((socket) => readsAtLeast(socket, large.length)));
  t.not(wholes[0], wholes[1], 'one was cut, the other has all of its answer');
});

t.test('the requests that wait for a connection are bounded', async (t) => {
  const upstream = await testUpstream(t, ({ url }, res) => {
    if (url !== '/held') res.end('ok');
  });
  const to = target(upstream.url, { connections: 1, timeoutMs: 1_000_000 });
  const { port, url } = await passThrough(t, [to]);
  const held = await connect(t, port);
  held.write('GET /held HTTP/1.1\r\nHost: a\r\n\r\n');
  await upstream.received(1);
  const many = await connect(t, port);
  many.write('GET /many HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(4_096));
  const statuses: number[] = [];
  const refused = await until('one is refused', () => {
    void ask(`${url}/one`, { method: 'GET' }).then(
      (answer) => statuses.push(answer.status),
      () => {},
    );
    return statuses[0];
  });
  t.equal(refused, 503);
});

t.test('requests of one client do not keep those of others waiting', async (t) => {
  const ends: (() => void)[] = [];
  const upstream = await testUpstream(t, (_one, res) => void ends.push(() => res.end('ok')));
  const { port, url } = await passThrough(t, [target(upstream.url, { connections: 1 })]);
  const many = netConnect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' });
  many.on('error', () => {});
  t.teardown(() => many.destroy());
  many.resume().write('GET /many HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(100));
  await upstream.received(1);
  let status = 0;
  void ask(`${url}/one`, { method: 'GET' }).then((answer) => (status = answer.status));
  await until('it has its turn', () => {
    ends.shift()?.();
    return status > 0;
  });
  t.equal(status, 200);
  t.ok(upstream.executions.length < 50, `${upstream.executions.length} of 101 ran`);
});

t.test('an upload that finds no room is not begun', async (t) => {
  const upstream = await testUpstream(t);
  const budget = new Budget(100_000);
  const { url } = await passThrough(t, [target(upstream.url)], undefined, undefined, { budget });
  budget.take(80_000, 'others');
  const refused = await ask(`${url}/a`, { body: 'x'.repeat(10) });
  t.equal(refused.status, 503);
  t.equal(problemOf(refused).code, 'overloaded');
  t.equal(refused.headers['retry-after'], '1');
  t.equal((await ask(`${url}/b`, { method: 'GET' })).status, 201, 'what needs none is served');
  budget.give(80_000, 'others');
  t.equal((await ask(`${url}/a`, { body: 'x'.repeat(10) })).status, 201);
  await until('nothing is held', () => budget.heldBytes === 0);
});

t.test('clients that do not read are cut; what is silent because its upstream is stays open', async (t) => {
  const large = Buffer.alloc(30_000_000, 'x');
  let event: (text: string) => void = () => {};
  const upstream = await testUpstream(t, ({ url }, res) => {
    if (url === '/large') return void res.end(large);
    if (url !== '/events') return void res.end('ok');
    res.write('data: 1\n\n');
    event = (text) => void res.end(text);
  });
  const { port, url, budget } = await passThrough(
    t,
    [target(upstream.url, { connections: connections + 1 })],
    undefined,
    undefined,
    { stallMs },
  );
  const stream = await connect(t, port);
  const begun = seen(stream, (text) => text.includes('data: 1'));
  stream.write('GET /events HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  await begun;
  for (let i = 0; i < 2 * connections; i += 1) await readingNothing(t, port, '/large');
  await until('what they do not take counts', () => budget.heldBytes > 0);
  // All connections but that of the stream are taken: it is served once the stalled ones are cut, and those behind them.
  t.equal((await ask(`${url}/quick`, { method: 'GET' })).status, 200);
  await until('nothing is held for them', () => budget.heldBytes === 0);
  const last = seen(stream, (text) => text.includes('data: 2'));
  event('data: 2\n\n');
  await last;
});

t.test('an answer that is over counts until it is taken, and is cut as well', async (t) => {
  const upstream = await testUpstream(t, (_one, res) => void res.end(Buffer.alloc(30_000)));
  const budget = new Budget(3_000_000);
  const { port } = await passThrough(t, [target(upstream.url)], undefined, undefined, { budget, stallMs });
  const socket = await connect(t, port);
  socket.pause();
  // More than the system takes, in answers that each end at once.
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1_000));
  await until('it counts', () => budget.heldBytes > 100_000);
  t.ok(budget.heldBytes <= 3_000_000);
  await until('it is cut', () => budget.heldBytes === 0);
});

t.test('a WebSocket whose client does not read is cut, and one that is silent is not', async (t) => {
  const block = Buffer.alloc(1 << 20, 'x');
  const switching = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
  const upstream = await RawUpstream.listen({
    requested: ({ socket, index }) => {
      socket.write(switching);
      const pump = (): void => {
        while (!socket.destroyed && socket.write(block));
        socket.once('drain', pump);
      };
      if (index > 0) pump();
    },
  });
  t.teardown(() => upstream.close());
  const { port } = await passThrough(t, [target(upstream.origin)], undefined, undefined, { stallMs });
  const ask101 =
    'GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n';
  const silent = await connect(t, port);
  const opened = seen(silent, (text) => text.includes('101'));
  silent.write(ask101);
  await opened;
  const stalled = await connect(t, port);
  stalled.pause();
  stalled.write(ask101);
  const far = await until('it has begun', () => upstream.connections[1]);
  // Not `once`, which would reject: a write that meets the cut is an error first.
  await new Promise((resolve) => far.socket.once('close', resolve));
  const later = seen(silent, (text) => text.includes('later'));
  upstream.connections[0]?.socket.write('later');
  await later;
});

t.test('a guarded body that comes too slowly is given up', async (t) => {
  const budget = new Budget(1_000_000);
  const server = createServer(async (req, res) => {
    const memory = { tryHold: (bytes: number) => budget.tryTake(bytes, 'a') };
    const read = await readBody(req, 1_000_000, memory, pace);
    res.setHeader('Connection', 'close');
    res.end(read.kind);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  // All but one byte, as fast as can be: no average would show it.
  const slow = await uploading(t, port, 99_999, 100_000);
  await seen(slow, (text) => text.includes('incomplete'));
  const quick = await uploading(t, port, 100_000, 100_000);
  await seen(quick, (text) => text.endsWith('body'));
});
