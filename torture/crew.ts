import { appendFileSync } from 'node:fs';
import { binDir, howToGetIt } from '../drill/debian-binaries.ts';
import type { Stage } from '../drill/stage.ts';
import { ownServer, query } from '../test/helpers/postgres.ts';
import { check, isServed } from './checker.ts';
import { type Lane, openLane } from './lane.ts';
import type { Options } from './options.ts';
import { cellsOf, type LaneKind, type Plan, type PlanOptions } from './plan.ts';
import { mend, play } from './play.ts';
import { nextPlans, plansForGaps, Queue } from './queue.ts';
import { type Result, type Results, versions } from './results.ts';
import { percent } from './summary.ts';
import { Throttle } from './throttle.ts';
import type { Line } from './upstream.ts';
import { UpstreamProcess } from './upstream-process.ts';

export interface CrewOptions {
  readonly stage: Stage;
  readonly options: Options;
  readonly results: Results;
  readonly say: (line: string) => void;
  /** Everything is being taken away: nothing is played, recorded or started any more. */
  readonly stopping: AbortSignal;
}

export interface Crew {
  readonly work: () => Promise<void>;
  readonly skipped: readonly string[];
}

const defaultSeed = 1;
const progressMs = 5_000;
/** A short form meets each cell once, and with bad luck a point is passed by: those are tried again so many times. */
const turnsForGaps = 3;

/** Lanes that play what is planned, each what fits it, until nothing is left. */
export async function crew({ stage, options, results, say, stopping }: CrewOptions): Promise<Crew> {
  const hasStandby = binDir() !== null;
  const skipped = hasStandby ? [] : [`freeze standby (it needs ${howToGetIt})`];
  const seed = options.seed ?? results.all.at(-1)?.seed ?? defaultSeed;
  const { point, action } = options;
  const planOptions: PlanOptions = {
    seed,
    hasStandby,
    ...(point === undefined ? {} : { point }),
    ...(action === undefined ? {} : { action }),
  };
  const runs = options.runs || cellsOf(0, planOptions).length;
  let queue = new Queue(nextPlans(planOptions, results.all, runs));
  let total = queue.left;
  const began = { at: performance.now(), runs: results.all.length };

  const work = async (): Promise<void> => {
    const upstream = await UpstreamProcess.start(stage, results.file('starts.jsonl'));
    const server = await ownServer(stage);
    const [row] = await query(server.url, 'SHOW server_version');
    const known = { ...versions(), postgres: String(row?.['server_version']), seed };
    say(`Torture: seed ${seed}, ${total} runs, ${options.lanes} lanes, commit ${known.commit}`);
    const throttle = new Throttle(stage, options.lanes);
    const tell = (): void => {
      const runs = results.all.length - began.runs;
      const perMinute = (runs * 60_000) / (performance.now() - began.at);
      const calls = results.all.reduce((sum, one) => sum + one.calls, 0);
      const served = results.all.reduce((sum, one) => sum + one.served, 0);
      const broken = results.all.reduce((sum, one) => sum + one.violations.length, 0);
      say(
        `${runs} of ${total} runs, ${perMinute.toFixed(0)} a minute; ` +
          `${percent(served / Math.max(1, calls))} of ${calls} calls served; ${broken} violations; ${throttle.limit} at once`,
      );
    };
    const timer = setInterval(tell, progressMs);
    stage.teardown(() => clearInterval(timer));
    const lanes = await Promise.all(
      laneKinds(options.lanes, queue).map((kind, number) =>
        openLane(stage, { kind, number, serverUrl: server.url, upstream }),
      ),
    );
    const playAll = async (lane: Lane): Promise<void> => {
      for (let plan = queue.next(lane.kind); plan !== null; plan = queue.next(lane.kind)) {
        await throttle.enter();
        if (stopping.aborted) return;
        await playAndCheck(lane, plan, { results, known, say, stopping });
        throttle.leave();
      }
    };
    await Promise.all(lanes.map(playAll));
    for (let turn = 0; options.isShort && turn < turnsForGaps && !stopping.aborted; turn += 1) {
      queue = new Queue(plansForGaps(planOptions, results.all));
      if (queue.left === 0) break;
      total += queue.left;
      say(`Once more what chance has missed: ${queue.left} runs`);
      await Promise.all(lanes.map(playAll));
    }
    clearInterval(timer);
    upstream.readOn();
    for (const line of upstream.late) results.add(tooLate(line, known), []);
    tell();
  };
  return { work, skipped };
}

/** As many of each as there is work for: half with one replica, half with three, one each that needs a server of its own. */
function laneKinds(lanes: number, queue: Queue): LaneKind[] {
  const special = (['crash', 'standby'] as const).filter((kind) => queue.wants(kind));
  const shared = (['one', 'three'] as const).filter((kind) => queue.wants(kind));
  const count = shared.length === 0 ? 0 : Math.max(shared.length, lanes - special.length);
  const usual = Array.from({ length: count }, (_, i) => shared[i % shared.length] as LaneKind);
  return [...special, ...usual];
}

/** Of a run that was over and checked: it goes to the results as one more line. */
function tooLate(line: Line, known: Desk['known']): Result {
  const what = `run ${line.run}: start ${line.start} after everybody had their answer`;
  return {
    run: line.run,
    ...known,
    at: new Date().toISOString(),
    point: 'after the end',
    action: '',
    lane: '',
    path: '',
    cut: '',
    reached: false,
    outcome: 'late',
    starts: 1,
    calls: 0,
    served: 0,
    rare: [],
    violations: [{ rule: 'nothing starts after the end', what }],
    ms: 0,
  };
}

interface Desk {
  readonly results: Results;
  readonly known: Pick<Result, 'seed' | 'commit' | 'code' | 'node' | 'postgres'>;
  readonly say: (line: string) => void;
  readonly stopping: AbortSignal;
}

async function playAndCheck(lane: Lane, plan: Plan, { results, known, say, stopping }: Desk): Promise<void> {
  const beganMs = performance.now();
  const { facts, calls, rare, outcome } = await play(lane, plan).catch(async (error: Error) => {
    stopping.throwIfAborted();
    // Something took too long on a busy machine: the run counts for nothing, and the lane is made well again.
    say(`run ${plan.number}, ${plan.point.name} × ${plan.action}, was given up: ${error.message}`);
    await mend(lane);
    return { facts: null, calls: [], rare: [], outcome: 'given up' };
  });
  stopping.throwIfAborted();
  const violations = facts === null ? [] : check(facts);
  const { number: run, point, action, path, cut } = plan;
  const result: Result = {
    run,
    ...known,
    at: new Date().toISOString(),
    point: point.name,
    action,
    lane: lane.kind,
    path,
    cut,
    reached: facts !== null,
    outcome,
    starts: facts?.starts.length ?? 0,
    calls: calls.length,
    served: calls.filter(isServed).length,
    rare,
    violations,
    ms: Math.round(performance.now() - beganMs),
  };
  lane.upstream.close(run);
  results.add(result, calls);
  if (violations.length > 0) {
    // All that is known about it: the logs alone do not have the plan, nor what the sidecars said.
    const said = lane.replicas.map((replica) => replica.said.slice(-60));
    appendFileSync(
      results.file('violations.jsonl'),
      `${JSON.stringify({ plan, facts, violations, said })}\n`,
    );
    for (const { rule, what } of violations)
      say(`BROKEN  run ${run}, ${point.name} × ${action}: ${rule}: ${what}`);
  }
}
