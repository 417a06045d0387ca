import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join, relative } from 'node:path';
import type { Finding, Outcome, Table } from './drill.ts';
import type { Options } from './options.ts';

const root = join(import.meta.dirname, '..');

const words: Record<Finding['kind'], string> = {
  kept: 'kept   ',
  broken: 'BROKEN ',
  vacuous: 'VACUOUS',
  limit: 'limit  ',
};

export function passed({ findings }: Outcome): boolean {
  return findings.every(({ kind }) => kind === 'kept' || kind === 'limit');
}

/** Prints the tables and findings, and writes everything to `.cache/drill/<name>.json`. */
export function report(name: string, options: Options, outcome: Outcome): void {
  for (const table of outcome.tables) console.log(`\n${textOf(table)}`);
  console.log('');
  for (const { kind, promise, evidence } of outcome.findings)
    console.log(`${words[kind]}  ${promise}: ${evidence}`);
  const dir = join(root, '.cache/drill');
  mkdirSync(dir, { recursive: true });
  const file = join(dir, `${name}.json`);
  writeFileSync(file, `${JSON.stringify({ ...about(name), options, ...outcome }, null, 2)}\n`);
  const verdict = passed(outcome) ? 'passed' : 'FAILED';
  console.log(`\n${name} ${verdict}; seed ${options.seed}; every figure: ${relative(process.cwd(), file)}`);
}

function about(name: string) {
  const { stdout } = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' });
  return {
    drill: name,
    at: new Date().toISOString(),
    command: ['npm run drill --', ...process.argv.slice(2)].join(' '),
    node: process.version,
    cores: cpus().length,
    commit: stdout?.trim() ?? '',
  };
}

function textOf({ title, head, rows }: Table): string {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((text, column) => text.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  const rule = '-'.repeat(widths.reduce((sum, width) => sum + width + 2, -2));
  return [title, line(head), rule, ...rows.map(line)].join('\n');
}
