import { roughly } from '../doctor/roughly.ts';
import { shortId } from '../operator/short-id.ts';
import type { RecordView } from '../store/operator.ts';

/** Control and invisible characters. What came from clients must not steer the terminal it is shown on. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

export function plain(text: string): string {
  return text.replaceAll(unprintable, (letter) => `\\u{${letter.codePointAt(0)?.toString(16)}}`);
}

function cut(text: string, letters: number): string {
  return text.length <= letters ? text : `${text.slice(0, letters - 1)}…`;
}

/** A moment, and how far it is from when the record was looked at. */
export function moment(atMs: number, { seenAtMs }: RecordView): string {
  const distance = roughly(Math.abs(atMs - seenAtMs));
  return `${timeText(atMs)}, ${atMs > seenAtMs ? `in ${distance}` : `${distance} ago`}`;
}

export function timeText(atMs: number): string {
  return new Date(atMs).toISOString().replace(/\.\d+Z$/, 'Z');
}

export function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

const heading = ['ID', 'STATE', 'AGE', 'METHOD', 'PATH', 'TENANT', 'STATUS', 'REQUEST ID', 'LAST ERROR'];

export function recordTable(records: readonly RecordView[]): string {
  const rows = records.map((record) => [
    shortId(record),
    record.state,
    roughly(record.seenAtMs - record.reservedAtMs),
    plain(record.method),
    cut(plain(record.path), 40),
    cut(plain(record.tenant ?? '-'), 24),
    String(record.status ?? '-'),
    cut(plain(record.requestId), 36),
    cut(plain(record.lastError ?? '-'), 60),
  ]);
  return table([heading, ...rows]);
}
