import type { Readable } from 'node:stream';
import t from 'tap';
import { ask } from '../helpers/client.ts';
import { type SidecarProcess, sidecarProcess } from '../helpers/sidecar.ts';
import { until } from '../helpers/until.ts';
import { testUpstream } from '../helpers/upstream.ts';

const get = { method: 'GET' };
/** Each line names the route: a long one fills what is held with few requests, and still goes into a pipe in one piece. */
const path = `/${'x'.repeat(3_000)}`;
const routes = `routes: [{ path: ${path}, mode: off }]`;

/** Requests, some at a time, until `isEnough`; gives back how many were sent. */
async function load(url: string, isEnough: () => Promise<boolean>): Promise<number> {
  let sent = 0;
  while (!(await isEnough())) {
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask(`${url}${path}`, get)));
    sent += answers.filter(({ status }) => status === 201).length;
    if (sent > 4_000) throw new Error('the log is not bounded');
  }
  return sent;
}

async function droppedOf({ opsUrl }: SidecarProcess): Promise<number> {
  const text = (await ask(`${opsUrl}/metrics`, get)).body.toString();
  const counts = text.matchAll(/^oncegate_log_lines_dropped_total(?:\{.*\})? (\d+)$/gm);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}

const requestsIn = ({ lines }: SidecarProcess): number =>
  lines.filter((line) => line.includes('"msg":"request"')).length;
const droppedIn = ({ lines }: SidecarProcess): number =>
  lines.reduce((sum, line) => sum + Number(/"dropped":(\d+)/.exec(line)?.[1] ?? 0), 0);

for (const workers of [1, 2])
  t.test(`${workers} processes`, async (t) => {
    t.test(
      'a log that nobody reads is bounded, told once it is read again, and holds no end up',
      async (t) => {
        const upstream = await testUpstream(t);
        const process = await sidecarProcess(t, {
          upstream: upstream.url,
          config: `workers: ${workers}\n${routes}`,
        });
        const output = process.child.stdout as Readable;
        output.pause();
        const sent = await load(process.dataUrl, async () => (await droppedOf(process)) > 20);
        const dropped = await droppedOf(process);
        output.resume();
        await until('the rest is told', () => requestsIn(process) + droppedIn(process) >= sent);
        t.equal(requestsIn(process) + droppedIn(process), sent, 'every line is there or counted');
        t.equal(droppedIn(process), dropped);
        t.equal((await ask(`${process.dataUrl}${path}`, get)).status, 201);
        await until('it is logged as before', () => requestsIn(process) + dropped === sent + 1);
        t.ok(
          process.lines.every((line) => line.startsWith('{') && line.endsWith('}')),
          'lines are whole',
        );

        output.pause();
        await load(process.dataUrl, async () => (await droppedOf(process)) > dropped);
        process.kill('SIGTERM');
        t.same(await process.exited, [0, null]);
      },
    );
  });

t.test('a reader that goes away ends nothing', async (t) => {
  const upstream = await testUpstream(t);
  const process = await sidecarProcess(t, { upstream: upstream.url, config: routes });
  (process.child.stdout as Readable).destroy();
  await load(process.dataUrl, async () => (await droppedOf(process)) > 0);
  process.kill('SIGTERM');
  t.same(await process.exited, [0, null]);
});
