import type { ContenderName } from './contenders.ts';
import type { Turn } from './measure.ts';

export interface Result {
  readonly name: ContenderName;
  readonly label: string;
  readonly turns: readonly Turn[];
}

export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export interface Ratio extends Spread {
  readonly what: string;
  /** At most; null: told for what it says, not to be reached. */
  readonly goal: number | null;
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const at = (index: number): number => sorted[index] as number;
  const median = Number.isInteger(middle) ? (at(middle - 1) + at(middle)) / 2 : at(Math.floor(middle));
  return { median, min: at(0), max: at(sorted.length - 1) };
}

const proxy = (turn: Turn): number | null => turn.proxy;
const postgres = (turn: Turn): number | null => turn.postgres;
const both = (turn: Turn): number | null => (turn.proxy === null ? null : turn.proxy + (turn.postgres ?? 0));

type Side = readonly [ContenderName, (turn: Turn) => number | null];

/** The goals of DESIGN.md, "Speed and size to reach". */
const wanted: readonly (readonly [what: string, goal: number | null, of: Side, to: Side])[] = [
  ['first request, sidecar + PostgreSQL : plain http-proxy', 1, ['first', both], ['http-proxy', both]],
  ['first request : one INSERT + one UPDATE per request', 0.35, ['first', both], ['statements', both]],
  ['replay, sidecar alone : plain http-proxy', 0.35, ['replay', proxy], ['http-proxy', proxy]],
  ['first request, sidecar alone : plain http-proxy', null, ['first', proxy], ['http-proxy', proxy]],
  [
    'group commit : statement per request, PostgreSQL alone',
    null,
    ['first', postgres],
    ['statements', postgres],
  ],
];

/** Each from the two turns of one round, for the machine may be busier in the next. */
export function ratiosOf(results: readonly Result[]): Ratio[] {
  return wanted.flatMap(([what, goal, of, to]) => {
    const values = divide(figures(results, of), figures(results, to));
    return values.length === 0 ? [] : [{ what, goal, ...spreadOf(values) }];
  });
}

function figures(results: readonly Result[], [name, figure]: Side): readonly (number | null)[] {
  return results.find((result) => result.name === name)?.turns.map(figure) ?? [];
}

function divide(above: readonly (number | null)[], below: readonly (number | null)[]): number[] {
  return above.flatMap((value, round) => {
    const by = below[round] ?? null;
    return value === null || by === null || by === 0 ? [] : [value / by];
  });
}

const columns: readonly (readonly [title: string, (turn: Turn) => number | null, digits: number])[] = [
  ['proxy µs', proxy, 0],
  ['PostgreSQL µs', postgres, 0],
  ['together µs', both, 0],
  ['commits', (turn) => turn.transactions, 3],
  ['WAL bytes', (turn) => turn.walBytes, 0],
  ['requests/s', (turn) => turn.requestsPerSecond, 0],
];

export function tableOf(results: readonly Result[]): string {
  const rows = results.map(({ label, turns }) => [
    label,
    ...columns.map(([, figure, digits]) => cell(turns.map(figure), digits)),
  ]);
  return aligned([['per request, median (min–max of rounds)', ...columns.map(([title]) => title)], ...rows]);
}

export function ratioTableOf(ratios: readonly Ratio[]): string {
  const rows = ratios.map(({ what, goal, median, ...rest }) => [
    what,
    cell([median, rest.min, rest.max], 2),
    goal === null ? '' : `≤ ${goal}`,
    goal === null ? '' : median <= goal ? 'reached' : 'not reached',
  ]);
  return aligned([['ratio of CPU, same round', 'median (min–max)', 'goal', ''], ...rows]);
}

function cell(values: readonly (number | null)[], digits: number): string {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return '–';
  const { median, min, max } = spreadOf(known);
  const text = (value: number): string => value.toFixed(digits);
  return `${text(median)} (${text(min)}–${text(max)})`;
}

function aligned(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((text, column) =>
        column === 0 ? text.padEnd(widths[0] ?? 0) : text.padStart(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd();
  const [title = [], ...rest] = rows.map(line);
  return [title, '-'.repeat(widths.reduce((sum, width) => sum + width + 2, -2)), ...rest].join('\n');
}
