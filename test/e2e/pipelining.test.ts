import { once } from 'node:events';
import net from 'node:net';
import t, { type Test } from 'tap';
import { ask, send } from '../helpers/client.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { until } from '../helpers/until.ts';
import { testUpstream } from '../helpers/upstream.ts';
import { connect, seen } from '../proxy/pass-through-server.ts';

/** Requests that a client sends before it has the answers to those before: all that they hold ends with their connection. */

const held = JSON.stringify({ hold: true });
const post = (key: string, steer = '{}') =>
  `POST /a HTTP/1.1\r\nHost: a\r\nIdempotency-Key: ${key}\r\nX-Steer: ${steer}\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{"amount":1}`;
const get = (path: string, steer = '{}') => `GET ${path} HTTP/1.1\r\nHost: a\r\nX-Steer: ${steer}\r\n\r\n`;

async function setUp(t: Test, config = '') {
  const upstream = await testUpstream(t);
  const running = await sidecar(t, { upstream: upstream.url, config });
  const heldBytes = async () =>
    Number(/^oncegate_held_bytes (\d+)$/m.exec(await running.health.metrics.text())?.[1]);
  const { drain } = running;
  return {
    upstream,
    url: `${running.dataUrl}/a`,
    port: Number(new URL(running.dataUrl).port),
    heldBytes,
    drain,
  };
}

t.test('replays behind a slow request: their memory is given back when the client leaves', async (t) => {
  const { upstream, url, port, heldBytes } = await setUp(t);
  const bytes = 900_000;
  t.equal((await send(url, 'big', { steer: { bytes } })).status, 201);
  const socket = await connect(t, port);
  socket.write(post('slow', held) + post('big').repeat(30));
  await upstream.received(2);
  await until('all replays are held', async () => (await heldBytes()) >= 30 * bytes);
  socket.resetAndDestroy();
  await until('only the slow request holds any', async () => (await heldBytes()) < 100);
  upstream.letGo();
  await until('nothing is held', async () => (await heldBytes()) === 0);
  t.equal((await send(url, 'next')).status, 201);
});

t.test('far more of them: so many are answered in order, then the connection closes', async (t) => {
  const { upstream, url, port, heldBytes } = await setUp(t);
  const bytes = 900_000;
  t.equal((await send(url, 'big', { steer: { bytes } })).status, 201);
  for (const [count, answered] of [
    [100, 32],
    [300, 0],
  ] as const) {
    const socket = await connect(t, port);
    const gone = once(socket, 'close');
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    const before = upstream.executions.length;
    socket.write(post(`slow-${count}`, held));
    await upstream.received(before + 1);
    socket.write(post('big').repeat(count));
    // Of 300 so many are beyond what may wait that the connection is cut.
    if (answered > 0) await until('they have come', async () => (await heldBytes()) >= 31 * bytes);
    else await gone;
    t.ok((await heldBytes()) < 32 * bytes, 'no more of them are held');
    upstream.letGo();
    await gone;
    t.equal(text.split('HTTP/1.1 201 Created').length - 1, answered);
    await until('nothing is held', async () => (await heldBytes()) === 0);
  }
  t.equal((await send(url, 'next')).status, 201);
});

t.test('requests passed through, pipelined: their connections upstream are given back', async (t) => {
  const { upstream, url, port } = await setUp(t, 'upstream: { connections: 8 }');
  const socket = await connect(t, port);
  socket.write(get('/b', held).repeat(8));
  await upstream.received(8);
  socket.resetAndDestroy();
  t.equal((await ask(url, { method: 'GET' })).status, 201);
});

t.test('duplicates behind a slow request stop waiting when the client leaves', async (t) => {
  const { upstream, url, port } = await setUp(t);
  const first = send(url, 'k', { steer: { hold: true } });
  await upstream.received(1);
  const socket = await connect(t, port);
  socket.write(get('/slow', held) + post('k').repeat(20));
  await upstream.received(2);
  socket.resetAndDestroy();
  upstream.letGo();
  t.equal((await first).status, 201);
  const { headers } = await send(url, 'k');
  t.equal(headers['idempotency-status'], 'replayed');
});

t.test('a large answer behind a slow request: it is read to its end when the client leaves', async (t) => {
  const { upstream, url, port, heldBytes } = await setUp(t, 'upstream: { connections: 1 }');
  const slow = await connect(t, port);
  // Not guarded, and so with connections of their own: the slow one does not take the only one.
  slow.write(get('/slow', held));
  await upstream.received(1);
  slow.write(post('large', JSON.stringify({ bytes: 30_000_000 })));
  await upstream.received(2);
  await until(
    'it is stored',
    async () => (await send(url, 'large')).headers['idempotency-status'] === 'executed',
  );
  slow.resetAndDestroy();
  t.equal((await send(url, 'next')).status, 201, 'the only connection is free again');
  await until('nothing is held', async () => (await heldBytes()) === 0);
});

t.test('what is in order stays so: a handful of pipelined requests are all answered', async (t) => {
  const { port } = await setUp(t);
  const socket = await connect(t, port);
  socket.write(post('a') + get('/b') + post('a') + get('/c'));
  const text = await seen(socket, (so) => so.split('HTTP/1.1 ').length === 5);
  t.notMatch(text, /connection: close/i);
});

t.test(
  'a drain that finds some of them: each that runs is answered, then the connection closes',
  async (t) => {
    const { upstream, port, drain } = await setUp(t);
    const socket = await connect(t, port);
    socket.write(post('a', held) + get('/b', held) + post('c', held));
    await upstream.received(3);
    const drained = drain(true);
    await until('no new connections', async () => {
      const other = net.connect(port, '127.0.0.1');
      const isRefused = await once(other, 'connect').then(
        () => false,
        () => true,
      );
      other.destroy();
      return isRefused;
    });
    const answers = seen(socket, (so) => so.split('HTTP/1.1 201 ').length === 4);
    upstream.letGo();
    const [, ...each] = (await answers).split('HTTP/1.1 ');
    t.same(
      each.map((answer) => /\r\nconnection: close\r\n/i.test(answer)),
      [false, false, true],
    );
    await drained;
  },
);
