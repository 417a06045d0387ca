/**
 * `npm run simulate`: the guarded path, its store and its loops on virtual time, through as many schedules as asked for. What
 * was played on the same sources adds up over several calls; Ctrl-C ends a call, and the next goes on.
 */
import { spawn, spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { loadProgress, saveProgress } from './progress.ts';
import { playSchedule } from './schedule.ts';
import { add, neverSeen, type Tally } from './tally.ts';

const usage = `usage: npm run simulate -- [options]

  --schedules N   until so many have been played in all (100,000)
  --processes N   at once (one per core)
  --fresh         forget what was played before
  --seed N        play this one alone, and print what happens in it`;

/** Schedules that one process plays: each call of it costs half a second of start. */
const perProcess = 5_000;
/** Milliseconds between lines of progress. */
const tellMs = 5_000;
/** Fewer need not have met every rare state. */
const enoughToMeetAll = 20_000;

function optionsOf() {
  const { values } = parseArgs({
    options: {
      schedules: { type: 'string', default: '100000' },
      processes: { type: 'string', default: String(availableParallelism()) },
      fresh: { type: 'boolean', default: false },
      seed: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  for (const name of ['schedules', 'processes', 'seed'] as const) {
    const given = values[name];
    if (given !== undefined && !(Number.isSafeInteger(Number(given)) && Number(given) > 0))
      throw new Error(`--${name} is "${given}": give a whole number above 0`);
  }
  return values;
}

async function tell(seed: number): Promise<void> {
  const { trace, violation } = await playSchedule({ seed, isTraced: true });
  for (const line of trace) console.log(line);
  console.log(
    violation === null ? `\nseed ${seed}: every promise kept` : `\nseed ${seed}: BROKEN: ${violation}`,
  );
  if (violation !== null) process.exitCode = 1;
}

async function playAll(wanted: number, processes: number, isFresh: boolean): Promise<void> {
  build();
  const progress = loadProgress(isFresh);
  const { tally } = progress;
  const beganMs = performance.now();
  const before = { played: tally.played, wallSeconds: progress.wallSeconds };
  if (before.played > 0) console.log(`going on after ${before.played} schedules of the same sources`);
  let isStopping = false;
  process.once('SIGINT', () => (isStopping = true));
  const say = () => {
    const perMinute = Math.round(((tally.played - before.played) / (performance.now() - beganMs)) * 60_000);
    console.log(
      `${tally.played} of ${wanted} schedules, ${tally.failed.length} failed, ${perMinute} a minute`,
    );
  };
  const timer = setInterval(say, tellMs);
  let claimed = tally.played;
  const lane = async () => {
    while (!isStopping && tally.failed.length === 0 && claimed < wanted) {
      const from = progress.nextSeed;
      const many = Math.min(perProcess, wanted - claimed);
      progress.nextSeed += many;
      claimed += many;
      await playSome(from, many, (line) => add(tally, line));
      progress.wallSeconds = before.wallSeconds + (performance.now() - beganMs) / 1000;
      saveProgress(progress);
    }
  };
  await Promise.all(Array.from({ length: processes }, lane));
  clearInterval(timer);
  say();
  report(tally, wanted);
}

const root = join(import.meta.dirname, '../..');

/** Compiled as Oncegate is: a sixth faster than translating as it runs. */
function build(): void {
  const tsc = join(root, 'node_modules/.bin/tsc');
  const { status } = spawnSync(process.execPath, [tsc, '-p', 'test/simulation/tsconfig.json'], {
    cwd: root,
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error('it does not compile');
}

/** Each process has a core to itself: help with its garbage would only take another's. */
const flags = ['--single-threaded-gc', '--max-semi-space-size=32'];

/** Rejects when the process ends badly: then nobody knows what it played. */
async function playSome(from: number, many: number, onTally: (tally: Tally) => void): Promise<void> {
  const worker = join(root, '.cache/simulation/js/test/simulation/worker.js');
  const child = spawn(process.execPath, [...flags, worker, String(from), String(many)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    // Ctrl-C is for the parent: what was begun is played to its end, so that no seed is passed over.
    detached: true,
  });
  for await (const line of createInterface({ input: child.stdout })) onTally(JSON.parse(line) as Tally);
  const code = child.exitCode ?? (await new Promise((resolve) => child.once('exit', resolve)));
  if (code !== 0)
    throw new Error(`the process of seeds ${from} to ${from + many - 1} ended with ${String(code)}`);
}

function report(tally: Tally, wanted: number): void {
  console.log('');
  for (const [state, times] of Object.entries(tally.seen).sort((a, b) => b[1] - a[1]))
    console.log(`${String(times).padStart(9)}  ${state}`);
  for (const { seed, violation } of tally.failed.slice(0, 20))
    console.log(`BROKEN   ${violation}: npm run simulate -- --seed ${seed}`);
  const missing = tally.played >= enoughToMeetAll ? neverSeen(tally) : [];
  for (const state of missing) console.log(`VACUOUS  never met: ${state}`);
  if (tally.failed.length === 0 && missing.length === 0 && tally.played >= wanted)
    console.log('kept     every promise, at every step of every schedule');
  else process.exitCode = 1;
}

try {
  const { help, seed, schedules, processes, fresh } = optionsOf();
  if (help) console.log(usage);
  else if (seed !== undefined) await tell(Number(seed));
  else await playAll(Number(schedules), Number(processes), fresh);
} catch (error) {
  console.error(`${(error as Error).message}\n\n${usage}`);
  process.exitCode = 2;
}
