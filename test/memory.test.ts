import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { totalmem } from 'node:os';
import { memoryUsage } from 'node:process';
import t from 'tap';
import { heldLimitOf, memoryShare, requestLimitOf, workerFlags } from '../src/memory.ts';
import { ask } from './helpers/client.ts';
import { sidecarProcess } from './helpers/sidecar.ts';
import { until } from './helpers/until.ts';
import { testUpstream } from './helpers/upstream.ts';
import { connect, seen } from './proxy/pass-through-server.ts';

const mb = 1_048_576;

/** A Node that believes to be in a container of that size. */
const inContainer = (bytes: number): NodeJS.ProcessEnv => ({
  NODE_OPTIONS: `--import=data:text/javascript,process.constrainedMemory=()=>${bytes}`,
});

t.test('what a process may use is its part of what the container may', async (t) => {
  t.equal(memoryShare(1, 512 * mb), 512 * mb);
  t.equal(memoryShare(4, 512 * mb), 128 * mb);
  for (const none of [undefined, 0, 2 ** 63, 2 ** 64, totalmem() * 2])
    t.equal(memoryShare(1, none), null, String(none));
  t.ok(memoryShare(1) === null || Number(memoryShare(1)) > memoryUsage.rss(), 'as this machine has it');
});

t.test('bodies take a quarter of the container, and 256 MB at most', async (t) => {
  t.equal(heldLimitOf(null), 256 * mb);
  t.equal(heldLimitOf(4096 * mb), 256 * mb);
  t.equal(heldLimitOf(1024 * mb), 256 * mb);
  t.equal(heldLimitOf(512 * mb), 128 * mb);
  t.equal(heldLimitOf(256 * mb), 64 * mb);
});

t.test('connections and heads take an eighth of it, which is less than a third of the heap', async (t) => {
  t.equal(requestLimitOf(null), 256 * mb);
  t.equal(requestLimitOf(4096 * mb), 256 * mb);
  t.equal(requestLimitOf(256 * mb), 32 * mb);
});

t.test('workers share the heap of one, unless somebody has set it', async (t) => {
  t.same(workerFlags(2, null, ''), []);
  t.same(workerFlags(2, 512 * mb, ''), ['--max-old-space-size=204', '--max-semi-space-size=16']);
  t.same(workerFlags(2, 512 * mb, '--max-semi-space-size=8'), ['--max-old-space-size=204']);
  t.same(workerFlags(2, 512 * mb, '--max_old_space_size=300'), []);
  const image = '--max-semi-space-size=16 --max-old-space-size-percentage=40';
  t.same(workerFlags(4, 512 * mb, image), ['--max-old-space-size-percentage=10']);
});

t.test('V8 follows the flags of a worker', async (t) => {
  const limit = 'console.log(v8.getHeapStatistics().heap_size_limit)';
  const said = execFileSync(process.execPath, [...workerFlags(2, 256 * mb, ''), '-e', limit], {
    env: {},
    encoding: 'utf8',
  });
  const limitMb = Number(said) / mb;
  t.ok(limitMb > 102 && limitMb <= 102 + 3 * 16, `${limitMb} MB with the room for new objects`);
});

t.test('a sidecar in a small container holds less, and says which bodies it cannot take', async (t) => {
  const upstream = await testUpstream(t);
  const config = 'defaults: { maxRequestBody: 40mb }';
  const running = await sidecarProcess(t, {
    upstream: upstream.url,
    config,
    env: inContainer(256 * mb),
  });
  const metrics = (await ask(`${running.opsUrl}/metrics`, { method: 'GET' })).body.toString();
  t.match(metrics, new RegExp(`^oncegate_held_bytes_limit ${64 * mb}$`, 'm'));
  t.ok(
    running.lines.some((line) => line.includes('allows 40 MB, but this process takes no body over 36 MB')),
    running.lines.join('\n'),
  );
});

t.test('a sidecar in a small container takes no more requests than it has memory for', async (t) => {
  const upstream = await testUpstream(t, ({ url }, res) => void (url === '/held' ? null : res.end()));
  // So long that none of them ends by itself while the others come.
  const config = 'upstream: { timeout: 10m, connections: 400 }';
  const running = await sidecarProcess(t, { upstream: upstream.url, config, env: inContainer(64 * mb) });
  const port = Number(new URL(running.dataUrl).port);
  const head = `GET /held HTTP/1.1\r\nHost: a\r\nX-Long: ${'x'.repeat(15_000)}\r\n\r\n`;
  // One of them may find the room that a closed connection gives back, but not all.
  const spares = await Promise.all([1, 2, 3].map(() => connect(t, port)));
  const sockets: Socket[] = [];
  let isFull = false;
  await until('a connection finds no room', async () => {
    const socket = await connect(t, port);
    socket.once('close', () => (isFull = true)).resume();
    socket.write(head);
    sockets.push(socket);
    // One after the other: a connection counts before its request does.
    await until('it is held', () => isFull || upstream.executions.length === sockets.length);
    return sockets.length === 400 || isFull;
  });
  t.ok(isFull, 'no 400 of them are taken');
  const refused = Promise.race(spares.map((spare) => seen(spare, (text) => text.endsWith('}'))));
  for (const spare of spares) spare.write(head);
  t.match(await refused, /^HTTP\/1\.1 503 .*connection: close.*"overloaded"/is);
  for (const socket of [...sockets, ...spares]) socket.destroy();
  const statusOf = () =>
    ask(running.dataUrl, { method: 'GET' }).then(
      ({ status }) => status,
      () => 0,
    );
  await until('all of it is free again', async () => (await statusOf()) === 200);
});

t.test('two workers share the container', { skip: process.platform !== 'linux' }, async (t) => {
  const upstream = await testUpstream(t);
  const running = await sidecarProcess(t, {
    upstream: upstream.url,
    config: 'workers: 2',
    env: inContainer(512 * mb),
  });
  const metrics = (await ask(`${running.opsUrl}/metrics`, { method: 'GET' })).body.toString();
  const limits = [...metrics.matchAll(/^oncegate_held_bytes_limit\{worker="\d"\} (\d+)$/gm)];
  t.same(
    limits.map(([, bytes]) => Number(bytes)),
    [64 * mb, 64 * mb],
  );
  const pids = running.lines.flatMap((line) => {
    const { msg, pid } = JSON.parse(line) as { msg: string; pid: number };
    return msg === 'worker serving' ? [pid] : [];
  });
  const flags = pids.map((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0'));
  // Before anything is judged: a run that ends at the first fault would leave the workers behind.
  running.kill('SIGKILL');
  await running.exited;
  t.same(
    flags.map((words) => words.includes('--max-old-space-size=102')),
    [true, true],
  );
});
