import { once } from 'node:events';
import net from 'node:net';
import t, { type Test } from 'tap';
import { type Answer, ask, send } from '../helpers/client.ts';
import { query, testDatabase } from '../helpers/postgres.ts';
import { recordOf } from '../helpers/records.ts';
import { type SidecarProcess, sidecarProcess } from '../helpers/sidecar.ts';
import { tcpProxy } from '../helpers/tcp-proxy.ts';
import { until } from '../helpers/until.ts';
import { type TestUpstream, testUpstream } from '../helpers/upstream.ts';

interface Draining {
  readonly upstream: TestUpstream;
  readonly process: SidecarProcess;
  readonly answers: readonly Promise<Answer>[];
}

/** A process with requests upstream, each on a connection that its client keeps: one guarded, one waiting for it, one not guarded. */
async function withWork(t: Test, env: NodeJS.ProcessEnv, databaseUrl?: string): Promise<Draining> {
  const upstream = await testUpstream(t);
  const process = await sidecarProcess(t, {
    upstream: upstream.url,
    env,
    ...(databaseUrl === undefined ? {} : { databaseUrl }),
  });
  const url = `${process.dataUrl}/a`;
  const guarded = send(url, 'k', { steer: { hold: true } });
  await upstream.received(1);
  const duplicate = send(url, 'k');
  const passing = send(url, 'get', { method: 'GET', steer: { hold: true } });
  await upstream.received(2);
  return { upstream, process, answers: [guarded, duplicate, passing] };
}

async function refusesConnections(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  const socket = net.connect(Number(port), hostname);
  const refused = await once(socket, 'connect').then(
    () => false,
    () => true,
  );
  socket.destroy();
  return refused;
}

const hasLine = ({ lines }: SidecarProcess, msg: string) =>
  lines.some((line) => line.includes(`"msg":"${msg}"`));

/** The limit is far below `drain.max` in these tests: nothing may wait for that. */
async function exitOf({ exited }: SidecarProcess): Promise<number | string | null> {
  let end: readonly [number | null, NodeJS.Signals | null] | null = null;
  void exited.then((how) => (end = how));
  await until('it has ended', () => end !== null);
  const [code, signal] = await exited;
  return signal ?? code;
}

t.test(
  'SIGTERM: not ready, then no new connections; what runs is answered and settled; exit 0',
  async (t) => {
    const { upstream, process, answers } = await withWork(t, {
      ONCEGATE_DRAIN_DELAY: '1s',
      ONCEGATE_DRAIN_MAX: '5m',
    });
    const silent = net.connect(Number(new URL(process.dataUrl).port), '127.0.0.1').on('error', () => {});
    t.teardown(() => silent.destroy());
    await once(silent, 'connect');
    process.kill('SIGTERM');
    const ready = await until('not ready', async () => {
      const answer = await ask(`${process.opsUrl}/readyz`, { method: 'GET' });
      return answer.status === 503 && answer;
    });
    t.match(ready.body.toString(), 'draining');
    t.equal(await refusesConnections(process.dataUrl), false, 'load balancers have not noticed yet');
    await until('no new connections', () => refusesConnections(process.dataUrl));
    t.equal((await ask(`${process.opsUrl}/livez`, { method: 'GET' })).status, 200, 'still alive');
    upstream.letGo();
    const [guarded, duplicate, passing] = await Promise.all(answers);
    t.same([guarded?.status, guarded?.headers['idempotency-status']], [201, 'executed']);
    t.same([duplicate?.status, duplicate?.headers['idempotency-status']], [201, 'replayed']);
    t.equal(passing?.status, 201);
    t.equal(await exitOf(process), 0);
    t.ok(hasLine(process, 'stopped'));
    t.match(await recordOf(process.databaseUrl, 'k'), { state: 'completed' });
    const alive = 'SELECT FROM oncegate.instance WHERE lease_until > clock_timestamp()';
    t.equal((await query(process.databaseUrl, alive)).length, 0, 'its lease is closed');
  },
);

t.test('SIGINT: the same, without the delay', async (t) => {
  const { upstream, process, answers } = await withWork(t, {
    ONCEGATE_DRAIN_DELAY: '5m',
    ONCEGATE_DRAIN_MAX: '5m',
  });
  process.kill('SIGINT');
  await until('no new connections', () => refusesConnections(process.dataUrl));
  upstream.letGo();
  t.same(
    (await Promise.all(answers)).map(({ status }) => status),
    [201, 201, 201],
  );
  t.equal(await exitOf(process), 0);
  t.match(await recordOf(process.databaseUrl, 'k'), { state: 'completed' });
});

t.test('a second signal ends it at once', async (t) => {
  const { process, answers } = await withWork(t, { ONCEGATE_DRAIN_MAX: '5m' });
  const cut = Promise.allSettled(answers);
  process.kill('SIGTERM');
  await until('draining', () => hasLine(process, 'draining'));
  // One stop may arrive twice, so that a second one counts only after a moment.
  await until('it has ended', () => {
    process.kill('SIGTERM');
    return process.child.exitCode !== null;
  });
  t.equal(await exitOf(process), 1);
  t.ok(hasLine(process, 'stopping without waiting; what was running becomes unknown'));
  t.ok((await cut).every(({ status }) => status === 'rejected'));
  t.match(await recordOf(process.databaseUrl, 'k'), { state: 'in_progress' }, 'for the sweeper of another');
});

t.test('an upstream that does not answer within drain.max: unknown, exit 0', async (t) => {
  const { upstream, process, answers } = await withWork(t, { ONCEGATE_DRAIN_MAX: '300ms' });
  const cut = Promise.allSettled(answers);
  process.kill('SIGTERM');
  t.equal(await exitOf(process), 0);
  t.match(await recordOf(process.databaseUrl, 'k'), { state: 'unknown', status: null });
  t.equal(
    (await cut).filter(({ status }) => status === 'fulfilled').length,
    0,
    'and nobody is told otherwise',
  );
  upstream.letGo();
  t.equal(upstream.countOf('k'), 1);
});

t.test('a store that is away does not hold it up for ever', async (t) => {
  const { url } = await testDatabase(t);
  const lane = await tcpProxy(t, { host: '127.0.0.1', port: Number(new URL(url).port) });
  const { upstream, process, answers } = await withWork(
    t,
    { ONCEGATE_DRAIN_MAX: '300ms' },
    lane.through(url),
  );
  const told = Promise.allSettled(answers);
  lane.refuse(true);
  lane.cutAll();
  upstream.letGo();
  process.kill('SIGTERM');
  t.equal(await exitOf(process), 0);
  await told;
  t.match(
    await recordOf(url, 'k'),
    { state: 'in_progress' },
    'its answer is lost: unknown, by the sweeper of another',
  );
});

t.test(
  'the app stops first, as beside a native sidecar: refused is not executed, and the key is free',
  async (t) => {
    const upstream = await testUpstream(t);
    const process = await sidecarProcess(t, {
      upstream: upstream.url,
      env: { ONCEGATE_DRAIN_DELAY: '5m', ONCEGATE_DRAIN_MAX: '5m' },
    });
    process.kill('SIGTERM');
    await until('draining', () => hasLine(process, 'draining'));
    upstream.stop();
    const answer = await send(`${process.dataUrl}/a`, 'k');
    t.same([answer.status, answer.headers['idempotency-status']], [502, 'released']);
    t.match(await recordOf(process.databaseUrl, 'k'), { state: 'failed_retryable' });
  },
);

t.test('a drain longer than the lease: it is renewed until the last answer is stored', async (t) => {
  const lease = { ONCEGATE_LEASE: '1s', ONCEGATE_LOOPS_SWEEP: '100ms', ONCEGATE_DRAIN_MAX: '5m' };
  const { upstream, process, answers } = await withWork(t, lease);
  const other = await sidecarProcess(t, {
    upstream: upstream.url,
    databaseUrl: process.databaseUrl,
    env: lease,
  });
  process.kill('SIGTERM');
  await until('no new connections', () => refusesConnections(process.dataUrl));
  const instances = () => query(process.databaseUrl, 'SELECT id, lease_until FROM oncegate.instance');
  const before = new Map((await instances()).map(({ id, lease_until }) => [id, Number(lease_until)]));
  await until('two leases later', async () =>
    (await instances()).every(({ id, lease_until }) => Number(lease_until) > (before.get(id) ?? 0) + 2_000),
  );
  t.match(await recordOf(process.databaseUrl, 'k'), { state: 'in_progress' }, 'the other has not swept it');
  upstream.letGo();
  const [guarded] = await Promise.all(answers);
  t.same([guarded?.status, guarded?.headers['idempotency-status']], [201, 'executed']);
  t.equal(await exitOf(process), 0);
  t.match(await recordOf(process.databaseUrl, 'k'), { state: 'completed' });
  t.match((await send(`${other.dataUrl}/a`, 'k')).headers, { 'idempotency-status': 'replayed' });
});
