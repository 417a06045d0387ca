import type { ContenderName } from './contenders.ts';
import type { LatencyRound } from './latency.ts';
import type { Turn } from './measure.ts';
import { cell, textTable } from './text-table.ts';

export interface Result {
  readonly name: ContenderName;
  readonly label: string;
  readonly turns: readonly Turn[];
  /** Resident, just after its start and at most. null: not measured. */
  readonly startMb: number | null;
  readonly peakMb: number | null;
}

/** All that one run has measured. */
export interface Findings {
  readonly results: readonly Result[];
  /** Empty: not measured. */
  readonly latency: readonly LatencyRound[];
  /** Of Oncegate that has nothing to do, and under many connections. */
  readonly idleMb: number | null;
  readonly crowdMb: number | null;
}

export const proxy = (turn: Turn): number | null => turn.proxy;
export const postgres = (turn: Turn): number | null => turn.postgres;
export const both = (turn: Turn): number | null =>
  turn.proxy === null ? null : turn.proxy + (turn.postgres ?? 0);

type Column = readonly [title: string, (turn: Turn) => number | null, digits: number];

const costs: readonly Column[] = [
  ['proxy µs', proxy, 0],
  ['PostgreSQL µs', postgres, 0],
  ['together µs', both, 0],
  ['commits', (turn) => turn.transactions, 3],
  ['WAL bytes', (turn) => turn.walBytes, 0],
];

const pace: readonly Column[] = [
  ['requests/s', (turn) => turn.requestsPerSecond, 0],
  ['p50 ms', (turn) => turn.p50Ms, 1],
  ['p99 ms', (turn) => turn.p99Ms, 1],
];

export function costTableOf(results: readonly Result[]): string {
  return tableOf('per request, median (min–max of rounds)', costs, results, () => []);
}

export function paceTableOf(results: readonly Result[]): string {
  const memory = (result: Result) => [cell([result.startMb], 0), cell([result.peakMb], 0)];
  return tableOf('pace, and resident memory', pace, results, memory, ['started MB', 'peak MB']);
}

function tableOf(
  title: string,
  columns: readonly Column[],
  results: readonly Result[],
  more: (result: Result) => string[],
  moreTitles: readonly string[] = [],
): string {
  const rows = results.map((result) => [
    result.label,
    ...columns.map(([, figure, digits]) => cell(result.turns.map(figure), digits)),
    ...more(result),
  ]);
  return textTable([[title, ...columns.map(([name]) => name), ...moreTitles], ...rows]);
}
