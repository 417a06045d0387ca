import { type Command, commands, type Flag } from './commands.ts';

export function overview(): string {
  return [
    'Oncegate gives any HTTP service idempotency keys: a request runs once, retries get its answer.',
    '',
    'Usage: oncegate <command> [flags]',
    '',
    ...columns(commands.map(({ usage, summary }) => [usage, summary])),
    '',
    'Examples:',
    ...commands.flatMap(({ examples }) => examples.slice(0, 1)).map((example) => `  ${example}`),
    '',
    'Exit codes: 0 clean, 1 runtime, 2 usage or config, 3 schema too old or new, 4 store unreachable.',
    '',
  ].join('\n');
}

export function commandHelp(command: Command): string {
  const section = (title: string, lines: readonly string[]): string[] =>
    lines.length === 0 ? [] : ['', title, ...lines];
  return [
    `${command.summary}.`,
    '',
    `Usage: oncegate ${command.usage}`,
    ...section('Flags:', columns(command.flags.map((flag) => [flagUsage(flag), flag.text]))),
    ...(command.notes.length === 0 ? [] : ['', ...command.notes]),
    ...section(
      'Examples:',
      command.examples.map((example) => `  ${example}`),
    ),
    '',
  ].join('\n');
}

function flagUsage({ name, value }: Flag): string {
  return value === undefined ? `--${name}` : `--${name} ${value}`;
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(0, ...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}
