import t, { type Test } from 'tap';
import { type Answer, ask, problemOf, send } from '../helpers/client.ts';
import { type OwnServer, ownServer, testDatabase } from '../helpers/postgres.ts';
import { recordOf } from '../helpers/records.ts';
import { type Sidecar, sidecar } from '../helpers/sidecar.ts';
import { serverMessage, tcpProxy } from '../helpers/tcp-proxy.ts';
import { until } from '../helpers/until.ts';
import { type TestUpstream, testUpstream } from '../helpers/upstream.ts';
import { connect, seen } from '../proxy/pass-through-server.ts';

const secret = 'what the upstream said';

interface Scene {
  readonly server: OwnServer;
  readonly upstream: TestUpstream;
  readonly sidecar: Sidecar;
  readonly url: string;
}

const ready = async ({ sidecar: { opsUrl } }: Scene) => await ask(`${opsUrl}/readyz`, { method: 'GET' });

/** Upstream when this resolves, and held there. */
async function hold({ url, upstream }: Scene, key: string): Promise<{ answer: Promise<Answer> }> {
  const before = upstream.executions.length;
  const answer = send(url, key, { steer: { hold: true, body: secret } });
  await upstream.received(before + 1);
  return { answer };
}

/** Asks until the store can say something about the key. */
const settled = (scene: Scene, key: string) =>
  until('the retry is answered', async () => {
    const answer = await send(scene.url, key);
    return answer.status === 503 || answer.status === 409 ? null : answer;
  });

const steps: readonly [name: string, step: (t: Test, scene: Scene) => Promise<void>][] = [
  [
    'stopped: guarded requests get 503 and not a byte goes upstream, others pass',
    async (t, scene) => {
      const { upstream, url, server } = scene;
      t.equal((await send(url, 'before')).status, 201);
      t.equal((await ready(scene)).status, 200);
      await server.stop();
      const ran = upstream.executions.length;
      const refused = await Promise.all([send(url, 'before'), send(url, 'new'), send(url, 'new')]);
      for (const answer of refused) {
        t.same([answer.status, problemOf(answer).code], [503, 'store_unavailable']);
        t.equal(answer.headers['retry-after'], '1');
      }
      t.equal(upstream.executions.length, ran, 'nothing was forwarded');
      for (const method of ['GET', 'PUT'])
        t.equal((await send(url, 'x', { method })).status, 201, `${method} passes`);
      await until('not ready', async () => (await ready(scene)).status === 503);
      const live = await ask(`${scene.sidecar.opsUrl}/livez`, { method: 'GET' });
      t.equal(live.status, 200, 'but alive: a restart would not help');
    },
  ],
  [
    'started again: service resumes without a restart, also after the lease has lapsed',
    async (t, scene) => {
      const { upstream, url, server } = scene;
      await until('the lease has lapsed', async () => /no lease/.test((await ready(scene)).body.toString()));
      const ran = upstream.executions.length;
      const refused = await send(url, 'new');
      t.same([refused.status, upstream.executions.length], [503, ran]);
      await server.start();
      await until('ready', async () => (await ready(scene)).status === 200);
      t.equal((await send(url, 'before')).headers['idempotency-status'], 'replayed');
      t.equal((await send(url, 'new')).headers['idempotency-status'], 'executed');
      t.same([upstream.countOf('before'), upstream.countOf('new')], [1, 1]);
    },
  ],
  [
    'an answer that comes while the store is away is given once it is kept',
    async (t, scene) => {
      const { upstream, url, server, sidecar } = scene;
      const { answer } = await hold(scene, 'late');
      await server.stop('immediate');
      upstream.letGo();
      t.equal((await send(url, 'late')).status, 503);
      await server.start();
      const first = await answer;
      t.same([first.status, first.headers['idempotency-status']], [201, 'executed']);
      t.match(await recordOf(sidecar.databaseUrl, 'late'), { state: 'completed', status: 201 });
      const retry = await settled(scene, 'late');
      t.equal(retry.headers['idempotency-status'], 'replayed');
      t.same(retry.body, first.body);
      t.equal(upstream.countOf('late'), 1);
    },
  ],
  [
    'away for too long: the client is told so, and its retry is a replay',
    async (t, scene) => {
      const { upstream, url, server } = scene;
      const { answer } = await hold(scene, 'unsaved');
      const other = await hold(scene, 'other');
      const waiting = send(url, 'unsaved');
      await server.stop('immediate');
      upstream.letGo();
      const told = await answer;
      t.same([told.status, problemOf(told).code], [503, 'answer_unsaved']);
      t.same([told.headers['retry-after'], told.headers['idempotency-status']], ['1', 'executed']);
      t.notMatch(told.body.toString(), secret, 'nothing that could not be replayed');
      t.not((await waiting).status, 201);
      t.equal((await other.answer).status, 503);
      await server.start();
      for (const key of ['unsaved', 'other']) {
        const retry = await settled(scene, key);
        t.same([retry.status, retry.headers['idempotency-status']], [201, 'replayed']);
        t.equal(upstream.countOf(key), 1, 'never run twice');
      }
    },
  ],
];

t.test('the store goes away and comes back', async (t) => {
  const server = await ownServer(t);
  const upstream = await testUpstream(t);
  const running = await sidecar(t, {
    upstream: upstream.url,
    databaseUrl: server.url,
    config: 'lease: 2s\nloops: { sweep: 200ms }\ndefaults: { inFlight: { wait: 500ms } }',
  });
  const scene = { server, upstream, sidecar: running, url: `${running.dataUrl}/a` };
  for (const [name, step] of steps) await t.test(name, (t) => step(t, scene));
});

t.test('a reservation that was made and never confirmed is released, and its key runs once', async (t) => {
  const upstream = await testUpstream(t);
  const { url } = await testDatabase(t);
  const lane = await tcpProxy(t, { host: '127.0.0.1', port: Number(new URL(url).port) });
  const { dataUrl } = await sidecar(t, {
    upstream: upstream.url,
    databaseUrl: lane.through(url),
    config: 'loops: { sweep: 200ms }\ndefaults: { inFlight: { wait: 0s } }',
  });
  const trap = lane.onceServerSends(serverMessage('C', 'INSERT'), 'hold');
  const first = send(`${dataUrl}/a`, 'k');
  await trap.fired;
  t.match(await recordOf(url, 'k'), { state: 'in_progress' }, 'the server has committed it');
  lane.refuse(true);
  lane.cutAll();
  t.equal(problemOf(await first).code, 'store_unavailable');
  t.equal(upstream.executions.length, 0, 'and nobody forwarded it');
  lane.refuse(false);
  const row = await until('released', async () => {
    const found = await recordOf(url, 'k');
    return found?.state === 'failed_retryable' && found;
  });
  t.equal(row.last_error, 'reserved but never forwarded');
  t.equal((await send(`${dataUrl}/a`, 'k')).headers['idempotency-status'], 'executed');
  t.equal(upstream.countOf('k'), 1);
});

t.test('a completion whose answer was lost is read back, and what the client sees is kept', async (t) => {
  const upstream = await testUpstream(t);
  const { url } = await testDatabase(t);
  const lane = await tcpProxy(t, { host: '127.0.0.1', port: Number(new URL(url).port) });
  const { dataUrl } = await sidecar(t, { upstream: upstream.url, databaseUrl: lane.through(url) });
  const trap = lane.onceServerSends(serverMessage('C', 'UPDATE 1'), 'cut-before');
  const first = await send(`${dataUrl}/a`, 'k');
  await trap.fired;
  t.same([first.status, first.headers['idempotency-status']], [201, 'executed']);
  t.match(await recordOf(url, 'k'), { state: 'completed', status: 201 });
  t.same((await send(`${dataUrl}/a`, 'k')).body, first.body);
  t.equal(upstream.countOf('k'), 1);
});

t.test('not a byte of an answer leaves before it is kept', async (t) => {
  const upstream = await testUpstream(t);
  const { url } = await testDatabase(t);
  const lane = await tcpProxy(t, { host: '127.0.0.1', port: Number(new URL(url).port) });
  const { dataUrl } = await sidecar(t, {
    upstream: upstream.url,
    databaseUrl: lane.through(url),
    // The reaper's statement has that word too.
    config: 'defaults: { maxStoredBody: 1kb }\nloops: { reap: 24h }',
  });
  for (const [key, bytes] of [
    ['small', 100],
    ['large', 100_000],
  ] as const) {
    // The server never gets to see the statement that completes the record.
    const trap = lane.onceClientSends('completed', 'hold');
    const socket = await connect(t, Number(new URL(dataUrl).port));
    const answer = seen(socket, (text) => text.includes('\r\n\r\n'));
    let isAnswered = false;
    socket.once('data', () => (isAnswered = true));
    const steer = JSON.stringify({ status: 200, bytes });
    socket.write(
      `POST /a HTTP/1.1\r\nHost: a\r\nIdempotency-Key: ${key}\r\nX-Steer: ${steer}\r\nContent-Length: 0\r\n\r\n`,
    );
    await trap.fired;
    // Time enough for others to be answered.
    for (let i = 0; i < 5; i += 1) await ask(dataUrl, { method: 'GET' });
    t.match(await recordOf(url, key), { state: 'in_progress' });
    t.equal(isAnswered, false, `${key}: no byte`);
    trap.release();
    t.match(await answer, /^HTTP\/1\.1 200 /);
    t.match(await recordOf(url, key), { state: 'completed' });
  }
});
