import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { check, type Violation } from './checker.ts';
import type { Call, RunFacts } from './facts.ts';

/** One faulted run, as it stands in runs.jsonl. */
export interface Result {
  readonly run: number;
  readonly seed: number;
  readonly commit: string;
  /** Of src and migrations as they were tried: the commit says nothing about what was not committed. */
  readonly code: string;
  readonly node: string;
  readonly postgres: string;
  readonly at: string;
  readonly point: string;
  readonly action: string;
  readonly lane: string;
  readonly path: string;
  readonly cut: string;
  readonly reached: boolean;
  /** Of the key that met the fault: its state at the end, or `none`. */
  readonly outcome: string;
  readonly starts: number;
  readonly calls: number;
  readonly served: number;
  readonly rare: readonly string[];
  readonly violations: readonly Violation[];
  readonly ms: number;
}

const root = join(import.meta.dirname, '..');

/** A folder of results that several calls of the command add to. */
export class Results {
  readonly dir: string;
  readonly all: Result[] = [];

  constructor(name: string, isFresh: boolean) {
    this.dir = join(root, '.cache/torture', name);
    if (isFresh) rmSync(this.dir, { recursive: true, force: true });
    mkdirSync(this.dir, { recursive: true });
    const file = this.file('runs.jsonl');
    if (!existsSync(file)) return;
    const lines = readFileSync(file, 'utf8').split('\n');
    // The last line may have been cut by a kill.
    for (const line of lines) if (line.endsWith('}')) this.all.push(JSON.parse(line) as Result);
    this.#judgeAgain();
  }

  /** Of runs that broke a rule all facts are kept: they are judged by the checker as it is now. */
  #judgeAgain(): void {
    const file = this.file('violations.jsonl');
    if (!existsSync(file)) return;
    for (const line of readFileSync(file, 'utf8').split('\n')) {
      if (!line.endsWith('}')) continue;
      const { facts } = JSON.parse(line) as { facts: RunFacts };
      const at = this.all.findIndex(({ run }) => run === facts.run);
      const result = this.all[at];
      if (result !== undefined) this.all[at] = { ...result, violations: check(facts) };
    }
  }

  file(name: string): string {
    return join(this.dir, name);
  }

  add(result: Result, calls: readonly Call[]): void {
    this.all.push(result);
    appendFileSync(this.file('runs.jsonl'), `${JSON.stringify(result)}\n`);
    appendFileSync(this.file('clients.jsonl'), calls.map((call) => `${JSON.stringify(call)}\n`).join(''));
  }
}

export interface Versions {
  readonly commit: string;
  readonly code: string;
  readonly node: string;
}

export function versions(): Versions {
  const git = (...args: string[]): string =>
    spawnSync('git', args, { cwd: root, encoding: 'utf8' }).stdout?.trim() ?? '';
  const isDirty = git('status', '--porcelain', 'src', 'migrations') !== '';
  const trees = ['HEAD:src', 'HEAD:migrations'].map((tree) => git('rev-parse', '--short=12', tree)).join('+');
  const commit = git('rev-parse', '--short', 'HEAD');
  return { commit, code: isDirty ? `${trees}, changed` : trees, node: process.version };
}
