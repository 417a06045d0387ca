import type { Check, Group } from './check.ts';

const signs = { ok: '✓', warning: '!', error: '✗', skipped: '-' } as const;

/** Columns of the longest name. */
const nameWidth = 'connections'.length;
const adviceIndent = ' '.repeat('  ✓ '.length + nameWidth + 2);

/** One check as text; `before` is the group of the check above it. */
export function lineOf(check: Check, before: Group | null): string {
  const { level, name, text, group } = check;
  const head = group === before ? '' : `${before === null ? '' : '\n'}${group}\n`;
  const advice = 'advice' in check ? check.advice.split('\n').map((line) => `${adviceIndent}${line}\n`) : [];
  return `${head}  ${signs[level]} ${name.padEnd(nameWidth)}  ${text}\n${advice.join('')}`;
}

export function verdictOf(checks: readonly Check[]): string {
  const [errors, warnings] = [count(checks, 'error'), count(checks, 'warning')];
  if (errors === 0 && warnings === 0) return '\nall is well\n';
  const said = [
    plural(errors, 'fault'),
    plural(warnings, 'warning'),
    ...(count(checks, 'skipped') === 0 ? [] : [`${count(checks, 'skipped')} not looked at`]),
  ];
  return `\n${said.join(', ')}\n`;
}

export function jsonOf(checks: readonly Check[]): string {
  const rows = checks.map(({ name, group, level, text, ...rest }) => ({
    name,
    group,
    level,
    text,
    ...('advice' in rest ? { advice: rest.advice } : {}),
  }));
  return `${JSON.stringify({ ok: exitCodeOf(checks) === 0, checks: rows })}\n`;
}

/** That of the first fault: what comes after it may follow from it. */
export function exitCodeOf(checks: readonly Check[]): number {
  return checks.find((check) => check.level === 'error')?.exitCode ?? 0;
}

function count(checks: readonly Check[], level: Check['level']): number {
  return checks.filter((check) => check.level === level).length;
}

function plural(amount: number, what: string): string {
  return `${amount === 0 ? 'no' : amount} ${what}${amount === 1 ? '' : 's'}`;
}
