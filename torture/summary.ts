import type { Violation } from './checker.ts';
import { coreActions, points } from './points.ts';
import { rareStates } from './rare.ts';
import type { Result } from './results.ts';

type Counts = Record<string, number>;

/** Everything that RELIABILITY.md needs. */
export interface Summary {
  readonly date: string;
  /** How many runs of each. */
  readonly commits: Counts;
  readonly code: Counts;
  readonly node: Counts;
  readonly postgres: Counts;
  readonly seeds: Counts;
  /** Faults that fired at their point. */
  readonly runs: number;
  readonly replicas: { readonly one: number; readonly three: number };
  /** point → action → what became of the key → how often. */
  readonly cells: Record<string, Record<string, Counts>>;
  readonly rare: Counts;
  /** Requests at the upstream. */
  readonly starts: number;
  readonly calls: number;
  readonly served: number;
  readonly servedShare: number;
  /** Runs whose point was not reached. */
  readonly missed: number;
  readonly violations: readonly (Violation & { readonly run: number; readonly seed: number })[];
  /** Why it proves nothing, if it does not. */
  readonly vacuous: readonly string[];
  /** What could not be tried here. */
  readonly skipped: readonly string[];
  readonly verdict: 'kept' | 'broken' | 'vacuous';
}

const leastServed = 0.8;

export interface Scope {
  readonly skipped: readonly string[];
  /** Only some points and actions were asked for: coverage says nothing. */
  readonly isTry: boolean;
}

export function summarize(all: readonly Result[], { skipped, isTry }: Scope): Summary {
  const reached = all.filter((one) => one.reached);
  const cells: Record<string, Record<string, Counts>> = {};
  const rare: Counts = Object.fromEntries(rareStates.map((name) => [name, 0]));
  for (const { point, action, outcome, rare: seen } of reached) {
    const counts = ((cells[point] ??= {})[action] ??= {});
    counts[outcome] = (counts[outcome] ?? 0) + 1;
    for (const name of seen) rare[name] = (rare[name] ?? 0) + 1;
  }
  const sum = (of: (one: Result) => number): number => all.reduce((total, one) => total + of(one), 0);
  const calls = sum((one) => one.calls);
  const served = sum((one) => one.served);
  const servedShare = calls === 0 ? 0 : served / calls;
  const violations = all.flatMap(({ run, seed, violations: found }) =>
    found.map((one) => ({ run, seed, ...one })),
  );
  const vacuous =
    servedShare < leastServed ? [`only ${percent(servedShare)} of ${calls} calls were served`] : [];
  if (!isTry) {
    const gaps = gapsIn(all);
    for (const cell of gaps.cells) vacuous.push(`never: ${cell} replica(s)`);
    for (const state of gaps.states) vacuous.push(`never seen: ${state}`);
  }
  return {
    date: new Date().toISOString(),
    commits: countBy(all, 'commit'),
    code: countBy(all, 'code'),
    node: countBy(all, 'node'),
    postgres: countBy(all, 'postgres'),
    seeds: countBy(all, 'seed'),
    runs: reached.length,
    replicas: {
      one: reached.filter(({ lane }) => lane === 'one').length,
      three: reached.filter(({ lane }) => lane !== 'one').length,
    },
    cells,
    rare,
    starts: sum((one) => one.starts),
    calls,
    served,
    servedShare,
    missed: all.length - reached.length,
    violations,
    vacuous,
    skipped,
    verdict: violations.length > 0 ? 'broken' : vacuous.length > 0 ? 'vacuous' : 'kept',
  };
}

/** What a proof must have met and has not. */
export interface Gaps {
  readonly cells: ReadonlySet<string>;
  readonly states: ReadonlySet<string>;
}

export function gapsIn(all: readonly Result[]): Gaps {
  const cells = new Set<string>();
  for (const { name: point } of points)
    for (const action of coreActions)
      for (const lane of ['one', 'three']) cells.add(cellName({ point, action, lane }));
  const states = new Set<string>(rareStates);
  for (const one of all) {
    if (!one.reached) continue;
    cells.delete(cellName(one));
    for (const state of one.rare) states.delete(state);
  }
  return { cells, states };
}

export function cellName({ point, action, lane }: Pick<Result, 'point' | 'action' | 'lane'>): string {
  return `${point}, ${action}, ${lane}`;
}

function countBy(all: readonly Result[], field: 'commit' | 'code' | 'node' | 'postgres' | 'seed'): Counts {
  const counts: Counts = {};
  for (const one of all) counts[String(one[field])] = (counts[String(one[field])] ?? 0) + 1;
  return counts;
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
