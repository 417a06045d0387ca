import type { DestinationStream } from 'pino';

const levels: Readonly<Record<number, string>> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'warn',
  50: 'error',
  60: 'fatal',
};

/** For a person at a terminal: the same lines as text. Everything else that reads our output gets the JSON. */
export function consoleLines(to: { write(text: string): unknown }): DestinationStream {
  return { write: (line) => void to.write(`${textOf(JSON.parse(line) as Line)}\n`) };
}

interface Line {
  readonly level: number;
  readonly time: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

function textOf({ level, time, msg, ...fields }: Line): string {
  const head = `${time.slice(11, 19)} ${(levels[level] ?? '').padEnd(5)} ${msg}`;
  const entries = Object.entries(fields);
  // A list does not fit on the line: each field gets one of its own.
  if (entries.some(([, value]) => Array.isArray(value)))
    return [head, ...entries.flatMap(blockOf)].join('\n');
  return [head, ...entries.map(([name, value]) => `${name}=${valueText(value)}`)].join(' ');
}

function blockOf([name, value]: readonly [string, unknown]): string[] {
  const values = Array.isArray(value) ? value : [value];
  return values.map((item, i) => `         ${(i === 0 ? name : '').padEnd(7)} ${valueText(item)}`);
}

function valueText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
