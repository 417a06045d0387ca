import { type SidecarProcess, sidecarProcess } from '../test/helpers/sidecar.ts';
import { until } from '../test/helpers/until.ts';
import { binDir, howToGetIt } from './debian-binaries.ts';
import { type Context, type Drill, type Finding, finding, type Outcome } from './drill.ts';
import { outcomeOf, type Round } from './failover-outcome.ts';
import { type Failover, Pair } from './failover-pair.ts';
import { unreplicatedAnswer } from './failover-unreplicated.ts';
import { HoldingUpstream } from './holding-upstream.ts';
import { Load } from './load.ts';
import { answer } from './logged-upstream.ts';
import { Random } from './random.ts';
import { untilSettled, verify } from './verify.ts';

const leaseMs = 3_000;
const sweepMs = 500;
/** Short, so that some failovers outlast the lease and some do not. */
const config = `
lease: ${leaseMs}ms
loops: { sweep: ${sweepMs}ms }
upstream: { timeout: 10s }
defaults: { inFlight: { wait: 1s } }`;

const workers = 24;
/** Calls that must have ended before the primary goes, and as many again after it went. */
const callsEachSide = 60;
/** Milliseconds that the upstream takes: some requests are there when the primary goes. */
const slowestMs = 40;

export const failover: Drill = {
  name: 'failover',
  about: 'PostgreSQL fails over to its standby under load; --sync (50 rounds) or --async (5)',
  missing: () => (binDir() === null ? howToGetIt : null),
  run,
};

interface Scene {
  readonly pair: Pair;
  readonly upstream: HoldingUpstream;
  readonly urls: readonly string[];
}

async function run(context: Context): Promise<Outcome> {
  const { stage, options, random, say } = context;
  const { replication } = options;
  const rounds = options.rounds ?? (options.isShort ? 1 : replication === 'sync' ? 50 : 5);
  const pair = await Pair.start(stage, binDir() as string);
  const upstream = await HoldingUpstream.start(stage, (start, res) => {
    setTimeout(answer, random.between(0, slowestMs), start, res);
  });
  // Before the sidecars: they look at it when they start.
  await pair.attachStandby(replication);
  const start = () => sidecarProcess(stage, { upstream: upstream.url, databaseUrl: pair.url, config });
  const sidecars = await Promise.all([start(), start()]);
  const urls = sidecars.map(({ dataUrl }) => dataUrl);
  const done: Round[] = [];
  for (let number = 1; number <= rounds; number += 1) {
    if (number > 1) await pair.attachStandby(replication);
    const round = await play({ pair, upstream, urls }, number, context);
    done.push(round);
    say(`Round ${number} of ${rounds}: ${describe(round)}`);
  }
  if (replication === 'async') return outcomeOf(replication, done, [warned(sidecars)]);
  await pair.attachStandby('sync');
  return outcomeOf(replication, done, [await unreplicatedAnswer({ pair, upstream, sidecars })]);
}

async function play({ pair, upstream, urls }: Scene, number: number, context: Context): Promise<Round> {
  const { options, random } = context;
  // Of its own: the workers' choices come in an order that no seed decides.
  const plan = choose(new Random(options.seed + number), options.replication);
  const load = new Load({ urls, random, workers, prefix: `round-${number}` });
  await until('calls before the failover', () => load.answered >= callsEachSide);
  const startedBefore = upstream.starts.length;
  const goneMs = performance.now();
  await pair.failOver(plan);
  const before = load.answered;
  const isAnsweredAgain = () => load.answered > before;
  await until('an answer after the failover', isAnsweredAgain, 30_000);
  const backAfterMs = performance.now() - goneMs;
  await until('calls after the failover', () => load.answered >= before + callsEachSide, 30_000);
  await load.stop();
  const inProgress = await untilSettled({ leaseMs, sweepMs }, () => pair.countInProgress());
  const verified = await verify(load, upstream, urls);
  const { calls, answered, tries, disagreements } = load;
  const starts = upstream.starts.length - startedBefore;
  const reused = verified.twice.filter((key) => {
    const [first, second] = upstream.startsOf(key);
    return Number(second?.epoch) <= Number(first?.epoch);
  });
  return {
    number,
    plan,
    backAfterMs,
    calls,
    answered,
    tries,
    disagreements,
    starts,
    inProgress,
    reused,
    ...verified,
  };
}

/** What people are told before it happens. */
function warned(sidecars: readonly SidecarProcess[]): Finding {
  const silent = sidecars.filter(
    ({ lines }) => !lines.some((line) => line.includes('none of them synchronous')),
  );
  const problems = silent.map(({ dataUrl }) => `${dataUrl} did not`);
  return finding('a start says what may be lost', problems, `${sidecars.length} sidecars warned`);
}

function choose(random: Random, replication: 'sync' | 'async'): Failover {
  const partitionMs =
    replication === 'async'
      ? random.between(500, 1_000)
      : random.pick([0, 0, random.between(100, 900), 3_000]);
  return {
    how: random.pick(['killed', 'stopped', 'vanished']),
    partitionMs,
    connections: partitionMs > 0 ? random.pick(['left alone', 'cut', 'ended']) : 'left alone',
    awayMs: random.pick([0, random.between(0, 500), random.between(500, 2_500)]),
  };
}

function describe({ plan, backAfterMs, keys, tries, lost, twice, inProgress }: Round): string {
  const { how, partitionMs, awayMs } = plan;
  return (
    `${how}, cut off ${partitionMs} ms before, away ${awayMs} ms: answers again after ${Math.round(backAfterMs)} ms; ` +
    `${keys} keys, ${tries['store_unavailable'] ?? 0} × 503, ` +
    `${lost.length} answers lost, ${twice.length} ran twice, ${inProgress} in progress`
  );
}
