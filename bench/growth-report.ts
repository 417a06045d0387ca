import type { Turn } from './measure.ts';
import type { Reaping } from './reaping.ts';
import { both, postgres, proxy } from './report.ts';
import { spreadOf } from './spread.ts';
import { cell, textTable } from './text-table.ts';

/** What was measured on a store of one size. */
export interface Grown {
  readonly keys: number;
  readonly turns: readonly Turn[];
  readonly reserveP99Ms: number | null;
  readonly reaping: Reaping;
}

/** The goals of DESIGN.md, "Speed and size to reach". */
const growthGoal = 1.2;
const besideReaperGoal = 1.5;

export function growthTables(results: readonly Grown[]): string {
  return [costs(results), reaper(results), goals(results)].join('\n\n');
}

function costs(results: readonly Grown[]): string {
  const title = [
    'stored keys; per first request',
    'sidecar µs',
    'PostgreSQL µs',
    'together µs',
    'WAL bytes',
    'reserve p99 ms',
  ];
  const rows = results.map(({ keys, turns, reserveP99Ms }) => [
    keys.toLocaleString('en'),
    cell(turns.map(proxy), 0),
    cell(turns.map(postgres), 0),
    cell(turns.map(both), 0),
    cell(
      turns.map((turn) => turn.walBytes),
      0,
    ),
    cell([reserveP99Ms], 1),
  ]);
  return textTable([title, ...rows]);
}

function reaper(results: readonly Grown[]): string {
  const title = [
    'stored keys; reaper',
    'expired at once',
    'keys/s alone',
    'keys/s under load',
    'p99 ms without',
    'p99 ms beside it',
  ];
  const rows = results.map(({ keys, reaping }) => [
    keys.toLocaleString('en'),
    reaping.expired.toLocaleString('en'),
    cell([reaping.rowsPerSecond], 0),
    cell([reaping.rowsPerSecondBeside], 0),
    cell([reaping.p99Ms], 1),
    cell([reaping.p99MsBeside], 1),
  ]);
  return textTable([title, ...rows]);
}

function goals(results: readonly Grown[]): string {
  const [smallest, largest] = [results[0], results.at(-1)];
  if (smallest === undefined || largest === undefined) return '';
  const grown = largest.turns.flatMap((turn, round) => {
    const [above, below] = [both(turn), both(smallest.turns[round] ?? turn)];
    return above === null || below === null || below === 0 ? [] : [above / below];
  });
  const { p99Ms, p99MsBeside, expired } = largest.reaping;
  const beside = p99MsBeside === null ? [] : [p99MsBeside / p99Ms];
  const row = (what: string, values: readonly number[], goal: number) => [
    what,
    cell(values, 2),
    `≤ ${goal}`,
    values.length === 0 ? 'not measured' : spreadOf(values).median <= goal ? 'reached' : 'not reached',
  ];
  const name = (keys: number): string => keys.toLocaleString('en');
  return textTable([
    ['ratio', 'median (min–max)', 'goal', ''],
    row(`CPU per request, ${name(largest.keys)} keys : ${name(smallest.keys)}`, grown, growthGoal),
    row(`p99 beside the reaper of ${name(expired)} : without`, beside, besideReaperGoal),
  ]);
}
