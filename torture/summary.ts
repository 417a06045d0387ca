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
  /** Each cell once: chance may miss a rare state, or a point. */
  readonly isShort?: boolean;
}

export function summarize(all: readonly Result[], { skipped, isTry, isShort = false }: Scope): Summary {
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
  const cellsMissed = missingCells(reached);
  if (!isTry && cellsMissed.length > (isShort ? mayMissInShort : 0)) vacuous.push(...cellsMissed);
  if (!isTry && !isShort) vacuous.push(...missingStates(rare));
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

/** Of 184 cells, each tried once. */
const mayMissInShort = 4;

function missingCells(reached: readonly Result[]): string[] {
  const met = new Set(reached.map(({ point, action, lane }) => `${point}, ${action}, ${lane}`));
  const gaps: string[] = [];
  for (const { name } of points)
    for (const action of coreActions)
      for (const lane of ['one', 'three'])
        if (!met.has(`${name}, ${action}, ${lane}`))
          gaps.push(`never: ${name}, ${action}, ${lane} replica(s)`);
  return gaps;
}

function missingStates(rare: Counts): string[] {
  return Object.entries(rare).flatMap(([name, count]) => (count === 0 ? [`never seen: ${name}`] : []));
}

function countBy(all: readonly Result[], field: 'commit' | 'code' | 'node' | 'postgres' | 'seed'): Counts {
  const counts: Counts = {};
  for (const one of all) counts[String(one[field])] = (counts[String(one[field])] ?? 0) + 1;
  return counts;
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
