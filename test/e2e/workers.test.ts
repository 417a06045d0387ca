import { spawn } from 'node:child_process';
import { once } from 'node:events';
import t, { type Test } from 'tap';
import { loadConfig } from '../../src/config/load.ts';
import { ask, send } from '../helpers/client.ts';
import { query, testDatabase } from '../helpers/postgres.ts';
import { type SidecarProcess, sidecarProcess } from '../helpers/sidecar.ts';
import { until } from '../helpers/until.ts';
import { testUpstream } from '../helpers/upstream.ts';

async function twoWorkers(t: Test, config = '') {
  const upstream = await testUpstream(t);
  const { url: databaseUrl } = await testDatabase(t);
  const running = await sidecarProcess(t, {
    upstream: upstream.url,
    databaseUrl,
    config: `workers: 2\n${config}`,
  });
  return { upstream, databaseUrl, running, url: `${running.dataUrl}/charges` };
}

/** Their process ids, by number: metrics have one series of each. */
async function metricsOf({ opsUrl }: SidecarProcess): Promise<string> {
  return (await ask(`${opsUrl}/metrics`, { method: 'GET' })).body.toString();
}

const pidsOf = ({ lines }: SidecarProcess): number[] =>
  lines.flatMap((line) => {
    const { msg, pid } = JSON.parse(line) as { msg: string; pid: number };
    return msg === 'worker serving' ? [pid] : [];
  });

t.test('two workers behave as two replicas behind one port', async (t) => {
  const { upstream, databaseUrl, running, url } = await twoWorkers(t);
  t.equal((await ask(`${running.opsUrl}/readyz`, { method: 'GET' })).status, 200);
  // Each a connection of its own: they are handed out in turn.
  const keys = Array.from({ length: 20 }, (_, i) => `key-${i}`);
  const all = await Promise.all(keys.flatMap((key) => [1, 2, 3].map(() => send(url, key))));
  t.ok(all.every(({ status }) => status === 201 || status === 409));
  for (const key of keys) {
    t.equal(upstream.countOf(key), 1, key);
    t.equal((await send(url, key)).headers['idempotency-status'], 'replayed');
  }
  const [instances] = await query(databaseUrl, 'SELECT count(DISTINCT instance) FROM oncegate.record');
  t.equal(Number(instances?.['count']), 2, 'both ran some');
  const text = await metricsOf(running);
  const counts = [...text.matchAll(/^oncegate_requests_total\{.*worker="([12])"\} (\d+)$/gm)];
  t.same(new Set(counts.map(([, worker]) => worker)), new Set(['1', '2']));
  t.equal(
    counts.reduce((sum, [, , count]) => sum + Number(count), 0),
    80,
    'no request is counted twice, none is left out',
  );
  t.equal([...text.matchAll(/^# TYPE oncegate_requests_total /gm)].length, 1);
  t.match(
    text,
    /^oncegate_request_seconds_bucket\{.*le="\+Inf".*worker="1".*\}|^oncegate_request_seconds_bucket\{.*worker="1".*\}/m,
  );
});

t.test(
  'a worker that is killed is replaced; SIGTERM: what runs is answered, then all of them end',
  async (t) => {
    const { running, url, upstream } = await twoWorkers(t);
    const [victim] = pidsOf(running);
    t.equal((await send(url, 'before')).status, 201);
    process.kill(victim as number, 'SIGKILL');
    await until('it was noticed', () =>
      running.lines.some((line) => line.includes('another takes its place')),
    );
    t.equal((await send(url, 'meanwhile')).status, 201);
    t.equal((await ask(`${running.opsUrl}/readyz`, { method: 'GET' })).status, 200);
    await until('a third one serves', () => pidsOf(running).length === 3);
    const replayed = await Promise.all(Array.from({ length: 6 }, () => send(url, 'before')));
    t.ok(replayed.every(({ headers }) => headers['idempotency-status'] === 'replayed'));
    t.equal(upstream.countOf('before'), 1);

    const ran = upstream.executions.length;
    const held = [1, 2, 3, 4].map((i) => send(url, `held-${i}`, { steer: { hold: true } }));
    await upstream.received(ran + 4);
    running.kill('SIGTERM');
    await until('draining', () => running.lines.filter((line) => line.includes('"draining"')).length === 3);
    upstream.letGo();
    for (const answer of await Promise.all(held)) t.equal(answer.headers['idempotency-status'], 'executed');
    t.same(await running.exited, [0, null], 'the one that was killed long ago does not count');
    for (const pid of pidsOf(running)) t.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
  },
);

t.test(
  'a suspended worker does not hold up the drain for ever: it is ended, and the exit code says so',
  async (t) => {
    const { running } = await twoWorkers(t, 'drain: { delay: 0s, max: 1s }');
    const [suspended, other] = pidsOf(running) as [number, number];
    process.kill(suspended, 'SIGSTOP');
    running.kill('SIGTERM');
    t.same(await running.exited, [1, null]);
    for (const pid of [suspended, other]) t.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
    t.ok(running.lines.some((line) => line.includes('a worker did not stop in time, and is ended')));
  },
);

t.test('who may get whose answer is warned of at the start, once', async (t) => {
  const { running } = await twoWorkers(t);
  const said = running.lines.filter((line) => line.includes('"level":40')).join('\n');
  t.match(said, /tenant none: .*set tenant\.from[^]*two services on one database/);
  t.equal(said.split('tenant none').length, 2);
});

t.test('signals that reach the workers too, before or after the first process, cut nothing', async (t) => {
  const { running, url, upstream } = await twoWorkers(t);
  const held = [1, 2, 3, 4].map((i) => send(url, `held-${i}`, { steer: { hold: true } }));
  await upstream.received(4);
  for (const pid of pidsOf(running)) {
    process.kill(pid, 'SIGTERM');
    process.kill(pid, 'SIGINT');
  }
  // Their answers show that they have seen the signals, and serve on.
  t.equal((await ask(`${running.opsUrl}/readyz`, { method: 'GET' })).status, 200);
  running.kill('SIGTERM');
  await until('draining', () => running.lines.filter((line) => line.includes('"draining"')).length === 3);
  // Longer than the time in which one stop counts as the same one.
  const echoMs = performance.now() + 400;
  await until('a second word would count by now', () => performance.now() > echoMs);
  for (const pid of pidsOf(running)) process.kill(pid, 'SIGTERM');
  upstream.letGo();
  for (const answer of await Promise.all(held)) t.equal(answer.headers['idempotency-status'], 'executed');
  t.same(await running.exited, [0, null]);
});

t.test('a second signal to the first process ends all at once, also a suspended worker', async (t) => {
  const { running, url, upstream } = await twoWorkers(t, 'drain: { delay: 0s, max: 5m }');
  const cut = Promise.allSettled([send(url, 'held', { steer: { hold: true } })]);
  await upstream.received(1);
  const pids = pidsOf(running);
  process.kill(pids[0] as number, 'SIGSTOP');
  running.kill('SIGINT');
  await until('draining', () => running.lines.some((line) => line.includes('"draining"')));
  await until('it has ended', () => {
    running.kill('SIGINT');
    return running.child.exitCode !== null;
  });
  t.same(await running.exited, [1, null]);
  await cut;
  for (const pid of pids)
    await until('gone', () => {
      try {
        return !process.kill(pid, 0);
      } catch {
        return true;
      }
    });
});

t.test('the first process is killed: no worker outlives it', async (t) => {
  const { running } = await twoWorkers(t);
  const pids = pidsOf(running);
  running.kill('SIGKILL');
  await running.exited;
  for (const pid of pids)
    await until('gone', () => {
      try {
        return !process.kill(pid, 0);
      } catch {
        return true;
      }
    });
});

t.test('a start that fails is said once, and ends with the same code', async (t) => {
  const { url } = await testDatabase(t);
  const argv = ['--import=tsx', 'src/cli/oncegate.ts', 'serve', 'http://127.0.0.1:1'];
  const where = ['--listen', '127.0.0.1:0', '--ops-listen', '127.0.0.1:0', '--database-url', url];
  const { PATH } = process.env;
  const child = spawn(process.execPath, [...argv, ...where], {
    env: { PATH, ONCEGATE_WORKERS: '2' },
  });
  let said = '';
  child.stderr.on('data', (chunk) => (said += chunk));
  t.same(await once(child, 'close'), [3, null]);
  t.match(said, /^oncegate: the store's schema is version 0, .*\n?.*\n$/);
});

t.test('an embedded PostgreSQL is of one process', async (t) => {
  t.throws(
    () => loadConfig({ text: 'workers: 2\nstore: { embedded: true }', flags: [], env: {} }),
    /workers.*embedded PostgreSQL is of one process alone; write 1/s,
  );
});
