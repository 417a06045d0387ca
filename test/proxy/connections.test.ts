import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { Budget } from '../../src/proxy/budget.ts';
import { type ConnectionLimits, Connections, type Expected, memoryOf } from '../../src/proxy/connections.ts';
import { until } from '../helpers/until.ts';
import { connect, seen } from './pass-through-server.ts';

const never = { lingerMs: 1e9, lingerBytes: 1e9, quietMs: 1e9, watchMs: 5 };

interface Scene extends Partial<ConnectionLimits> {
  readonly budget?: Budget;
  readonly onExpected?: (expected: Expected) => void;
}

async function serve(
  t: Test,
  { budget = new Budget(1e9), onExpected = () => {}, ...limits }: Scene,
  answer?: RequestListener,
): Promise<number> {
  const server = createServer((req, res) => {
    const expected = connections.expect(res);
    onExpected(expected);
    if (expected === 'ignored') return;
    if (answer === undefined) res.end('early');
    else answer(req, res);
  });
  // As Fastify sets it: no limit for the rest of a body.
  server.requestTimeout = 0;
  const connections = new Connections(server, budget, { ...never, ...limits });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    connections.cut();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const get = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
const upload = (bytes: number) => `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\n`;
const isAnswered = (text: string) => text.endsWith('early');

t.test('a body that drips on after its answer ends with the connection', async (t) => {
  const socket = await connect(t, await serve(t, { lingerMs: 50 }));
  socket.write(upload(1_000_000));
  await seen(socket, isAnswered);
  await until('closed', () => socket.destroyed || !socket.write('x'.repeat(10)));
  await until('closed', () => socket.destroyed);
  t.pass('closed');
});

t.test('a body that pours on after its answer ends with the connection', async (t) => {
  const socket = await connect(t, await serve(t, { lingerBytes: 1_000_000 }));
  socket.write(upload(1e12));
  await seen(socket, isAnswered);
  const piece = Buffer.alloc(65_536);
  const pour = (): void => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.on('drain', pour);
  pour();
  await until('closed', () => socket.destroyed);
  t.pass('closed');
});

t.test('a body that ends after its answer leaves the connection as it was', async (t) => {
  const socket = await connect(t, await serve(t, { lingerMs: 300 }));
  const open = performance.now();
  socket.write(upload(3));
  await seen(socket, isAnswered);
  socket.write('abc');
  while (performance.now() - open < 600) {
    socket.write(get);
    await seen(socket, isAnswered);
  }
  t.notOk(socket.destroyed);
});

t.test('a connection without a request does not last, whatever empty lines come', async (t) => {
  const port = await serve(t, { quietMs: 100 });
  for (const first of ['', `${get}\r\n`]) {
    const socket = await connect(t, port);
    socket.on('data', () => {});
    socket.write(first);
    await until('closed', () => {
      socket.write('\r\n');
      return socket.destroyed;
    });
    t.pass('closed');
  }
});

t.test('a connection that waits for its answer is not quiet', async (t) => {
  const waits: (() => void)[] = [];
  const port = await serve(
    t,
    { quietMs: 20, lingerMs: 20 },
    (_req, res) => void waits.push(() => res.end('early')),
  );
  const socket = await connect(t, port);
  socket.write(get);
  const other = await connect(t, port);
  await until('one that asks nothing is closed meanwhile', () => other.destroyed || other.readableEnded);
  const answer = seen(socket, isAnswered);
  for (const end of waits) end();
  t.match(await answer, 'early');
});

t.test('each unfinished answer is closed once when its connection closes', async (t) => {
  const closed: number[] = [];
  let count = 0;
  const port = await serve(t, {}, (_req, res) => {
    const nth = count++;
    res.on('close', () => closed.push(nth));
  });
  const socket = await connect(t, port);
  socket.write(get.repeat(5));
  await until('all have come', () => count === 5);
  socket.resetAndDestroy();
  await until('all are closed', () => closed.length >= 5);
  t.same(
    closed.sort((a, b) => a - b),
    [0, 1, 2, 3, 4],
  );
});

t.test('a client that takes nothing of an answer that has ended is cut', async (t) => {
  let isCut = false;
  const port = await serve(t, { untakenMs: 100 }, (_req, res) => {
    res.once('close', () => (isCut = true));
    // More than the system takes for a client.
    res.end(Buffer.alloc(32 * 1_048_576));
  });
  const socket = await connect(t, port);
  socket.pause();
  socket.write(get);
  await until('it is cut', () => isCut);
  t.pass('cut');
});

t.test('connections and the heads of their requests count until they are over', async (t) => {
  const budget = new Budget(1e9);
  const answers: (() => void)[] = [];
  const port = await serve(t, { budget }, (_req, res) => void answers.push(() => res.end('early')));
  const socket = await connect(t, port);
  await until('the connection counts', () => budget.heldBytes > 0);
  const idleBytes = budget.heldBytes;
  const large = get.replace('Host', `X: ${'x'.repeat(10_000)}\r\nHost`);
  socket.write(large.repeat(3));
  await until('all have come', () => answers.length === 3);
  t.ok(budget.heldBytes >= idleBytes + 30_000);
  const all = seen(socket, (text) => text.split('early').length === 4);
  for (const answer of answers) answer();
  await all;
  await until('what was answered does not count', () => budget.heldBytes === idleBytes);
  socket.write(large.repeat(3));
  await until('they have come', () => answers.length === 6);
  socket.resetAndDestroy();
  await until('nor what nobody waits for', () => budget.heldBytes === 0);
});

t.test('what works on when its client has left keeps its memory', async (t) => {
  const budget = new Budget(1e9);
  let letGo: (() => void) | undefined;
  const port = await serve(t, { budget }, (_req, res) => {
    const memory = memoryOf(res);
    memory?.keep();
    res.once('close', () => {
      letGo = () => memory?.letGo();
    });
  });
  const socket = await connect(t, port);
  socket.write(get);
  await until('it has come', () => budget.heldBytes > 20_000);
  socket.resetAndDestroy();
  const end = await until('its client has left', () => letGo);
  await until('its connection does not count', () => budget.heldBytes < 10_000);
  t.ok(budget.heldBytes > 0);
  end();
  t.equal(budget.heldBytes, 0);
});

t.test(
  'where there is no room requests are crowded, what comes on sealed connections too, and further connections end',
  async (t) => {
    const budget = new Budget(100_000);
    const seenOnes: Expected[] = [];
    const port = await serve(t, { budget, depth: 4, onExpected: (one) => seenOnes.push(one) }, () => {});
    const first = await connect(t, port);
    first.write(get.repeat(3));
    await until('they have come', () => seenOnes.length === 3);
    const second = await connect(t, port);
    second.write(get.repeat(4));
    await until('these too', () => seenOnes.length === 7);
    t.equal(seenOnes[0], 'expected');
    t.equal(seenOnes.at(-1), 'crowded');
    const third = await connect(t, port);
    await until('it ends', () => third.destroyed || third.readableEnded || !third.write(''));
    second.write(get);
    await until('a sealed one ends', () => second.destroyed || !second.write(''));
    t.equal(seenOnes.at(-1), 'ignored');
    first.destroy();
    await until('all is given back', () => budget.heldBytes === 0);
  },
);
