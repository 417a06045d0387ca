import { spreadOf } from './spread.ts';

/** Median (min–max); one value alone; or a dash where there is none. */
export function cell(values: readonly (number | null)[], digits: number): string {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return '–';
  const { median, min, max } = spreadOf(known);
  const text = (value: number): string => value.toFixed(digits);
  return known.length === 1 ? text(median) : `${text(median)} (${text(min)}–${text(max)})`;
}

/** The first row is the title, the first column stands left. */
export function textTable(rows: readonly (readonly string[])[]): string {
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
