/** `npm run bench:soak`: whether memory stays where it is under steady load. */
import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import { build } from './build.ts';
import { describeRun } from './describe-run.ts';
import { onStage } from './main.ts';
import { type Bench, send } from './measure.ts';
import { count, UsageError } from './options.ts';
import { canMeasureProcesses, memoryOf } from './processes.ts';
import { save } from './save.ts';
import { say } from './say.ts';
import { spreadOf } from './spread.ts';
import type { Stage } from './stage.ts';
import { type Started, startOncegate } from './start.ts';
import { textTable } from './text-table.ts';
import { warmUp } from './warm-up.ts';

const usage = `usage: npm run bench:soak -- [options]

  --minutes N      of load, at least 4 (10); the second half is judged
  --connections N  keep-alive connections, one request at a time on each (64)`;

/** MB by which the last minute may stand above the first one of the second half. */
const mayGrowMb = 5;
const sampleMs = 1_000;
const requestsPerOrder = 1_000;
/** Four first requests to one replay, as in the table. */
const keys = Array.from({ length: 512 }, () => randomUUID());
const traffic = { kind: 'mixed', keys } as const;

interface Minute {
  readonly requests: number;
  readonly residentMb: readonly number[];
}

async function run(minutes: number, connections: number, stage: Stage): Promise<number> {
  if (!canMeasureProcesses) throw new UsageError('memory is measured by /proc, which only Linux has');
  build();
  const { bench, site } = await stage.setUp({ keys: 20_000, profileDir: null });
  const started = await startOncegate(site, { name: 'soak' });
  say('Warming up …');
  const warmth = { requests: 30_000, connections, seconds: Number.POSITIVE_INFINITY };
  await warmUp(bench, { ...started, traffic }, warmth, say);
  const all: Minute[] = [];
  for (let minute = 1; minute <= minutes; minute += 1) {
    const one = await playMinute(bench, started, connections);
    all.push(one);
    say(`Minute ${minute} of ${minutes}: ${one.requests} requests, ${medianOf(one).toFixed(1)} MB`);
  }
  const grewMb = medianOf(all.at(-1) as Minute) - medianOf(all[Math.floor(minutes / 2)] as Minute);
  const isKept = grewMb < mayGrowMb;
  console.log(`\n${tableOf(all)}\n`);
  console.log(
    `From minute ${Math.floor(minutes / 2) + 1} to ${minutes}: ${grewMb.toFixed(1)} MB; goal: less than ${mayGrowMb} MB: ${isKept ? 'reached' : 'not reached'}`,
  );
  const { rows } = await bench.client.query<{ version: string }>(
    `SELECT current_setting('server_version') AS version`,
  );
  const about = describeRun(rows[0]?.version ?? 'unknown', 'npm run bench:soak --');
  console.log(`Every sample: ${save('soak', { ...about, minutes: all, grewMb })}`);
  return isKept ? 0 : 1;
}

async function playMinute(bench: Bench, { port, child }: Started, connections: number): Promise<Minute> {
  const residentMb: number[] = [];
  const look = (): void => void residentMb.push(memoryOf(child?.pid ?? 0).residentMb);
  const timer = setInterval(look, sampleMs);
  const untilMs = performance.now() + 60_000;
  let requests = 0;
  try {
    while (performance.now() < untilMs) {
      const done = await send(bench, { port, connections, traffic, requests: requestsPerOrder });
      requests += done.requests;
    }
  } finally {
    clearInterval(timer);
  }
  return { requests, residentMb };
}

const medianOf = ({ residentMb }: Minute): number => spreadOf(residentMb).median;

function tableOf(minutes: readonly Minute[]): string {
  const rows = minutes.map((minute, index) => {
    const { median, min, max } = spreadOf(minute.residentMb);
    return [String(index + 1), String(minute.requests), ...[median, min, max].map((mb) => mb.toFixed(1))];
  });
  return textTable([['minute', 'requests', 'resident MB, median', 'least', 'most'], ...rows]);
}

await onStage(usage, async (args, stage) => {
  const { values } = parse(args);
  if (values.help) return 'help';
  const minutes = count('minutes', values.minutes, 10);
  if (minutes < 4) throw new UsageError('--minutes: in less than 4 nothing can be seen to grow');
  return await run(minutes, count('connections', values.connections, 64), stage);
});

function parse(args: readonly string[]) {
  try {
    const options = {
      help: { type: 'boolean', short: 'h' },
      minutes: { type: 'string' },
      connections: { type: 'string' },
    } as const;
    return parseArgs({ args: [...args], options });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
