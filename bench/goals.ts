import type { ContenderName } from './contenders.ts';
import type { Turn } from './measure.ts';
import { crowdConnections } from './memory.ts';
import { both, type Findings, postgres, proxy, type Result } from './report.ts';
import { type Spread, spreadOf } from './spread.ts';
import { cell, textTable } from './text-table.ts';

export interface Verdict extends Spread {
  readonly what: string;
  readonly unit: '' | ' ms' | ' MB';
  /** At most; null: told for what it says, not to be reached. */
  readonly goal: number | null;
}

type Side = readonly [ContenderName, (turn: Turn) => number | null];

/** The goals of DESIGN.md, "Speed and size to reach", that are ratios of CPU. */
const ratios: readonly (readonly [what: string, goal: number | null, of: Side, to: Side])[] = [
  ['first, sidecar + PostgreSQL : http-proxy', 1, ['first', both], ['http-proxy', both]],
  ['first : one INSERT + one UPDATE', 0.35, ['first', both], ['statements', both]],
  ['replay, sidecar : http-proxy', 0.35, ['replay', proxy], ['http-proxy', proxy]],
  ['pass-through : http-proxy, GET', 1.1, ['pass-through', proxy], ['http-proxy-get', proxy]],
  ['first, sidecar + PostgreSQL : lean http-proxy', null, ['first', both], ['http-proxy-lean', both]],
  ['replay, sidecar : lean http-proxy', null, ['replay', proxy], ['http-proxy-lean', proxy]],
  ['replay from the store, sidecar : http-proxy', null, ['replay-store', proxy], ['http-proxy', proxy]],
  ['pass-through : lean http-proxy, GET', null, ['pass-through', proxy], ['http-proxy-lean-get', proxy]],
  ['first, sidecar : http-proxy', null, ['first', proxy], ['http-proxy', proxy]],
  ['first : one INSERT + one UPDATE, PostgreSQL', null, ['first', postgres], ['statements', postgres]],
  ['first with 2 workers : with 1', null, ['first-workers', both], ['first', both]],
  ['first : in-service library', null, ['first', both], ['library', both]],
  ['http-proxy : nginx', null, ['http-proxy', proxy], ['nginx', proxy]],
];

/** What two commits take, and half a millisecond for the way. */
const latencyGoal = { commits: 2, moreMs: 0.5 };
const memoryGoalMb = { idle: 90, crowd: 180 };

export function judge(findings: Findings): Verdict[] {
  const goals = ratios.flatMap(([what, goal, of, to]) => {
    const values = ratioOf(findings.results, of, to);
    return values.length === 0 ? [] : [{ what, goal, unit: '' as const, ...spreadOf(values) }];
  });
  return [...goals, ...judgeLatency(findings), ...judgeMemory(findings)].sort(
    (a, b) => Number(a.goal === null) - Number(b.goal === null),
  );
}

function judgeLatency({ latency }: Findings): Verdict[] {
  if (latency.length === 0) return [];
  const commit = spreadOf(latency.map((round) => round.commit));
  const added = spreadOf(latency.map((round) => round.first - round.direct));
  const goal = latencyGoal.commits * commit.median + latencyGoal.moreMs;
  return [
    { what: 'added at one connection (goal: 2 commits + 0.5 ms)', unit: ' ms', goal, ...added },
    { what: 'one commit of this PostgreSQL', unit: ' ms', goal: null, ...commit },
  ];
}

function judgeMemory({ idleMb, crowdMb }: Findings): Verdict[] {
  const verdict = (what: string, goal: number, value: number | null): Verdict[] =>
    value === null ? [] : [{ what, unit: ' MB', goal, ...spreadOf([value]) }];
  return [
    ...verdict('resident, idle', memoryGoalMb.idle, idleMb),
    ...verdict(`resident, ${crowdConnections} connections`, memoryGoalMb.crowd, crowdMb),
  ];
}

/** Each from the two turns of one round, for the machine may be busier in the next. */
function ratioOf(results: readonly Result[], of: Side, to: Side): number[] {
  const below = figures(results, to);
  return figures(results, of).flatMap((value, round) => {
    const by = below[round] ?? null;
    return value === null || by === null || by === 0 ? [] : [value / by];
  });
}

function figures(results: readonly Result[], [name, figure]: Side): readonly (number | null)[] {
  return results.find((result) => result.name === name)?.turns.map(figure) ?? [];
}

export function goalTableOf(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map(({ what, goal, unit, median, min, max }) => [
    what,
    `${cell(min === max ? [median] : [median, min, max], 2)}${unit}`,
    goal === null ? '' : `≤ ${Number(goal.toFixed(2))}${unit}`,
    goal === null ? '' : median <= goal ? 'reached' : 'not reached',
  ]);
  return textTable([['ratios are of CPU, within a round', 'median (min–max)', 'goal', ''], ...rows]);
}
