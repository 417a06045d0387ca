import type { Test } from 'tap';
import { testUpstream } from '../helpers/upstream.ts';
import { inProcess } from './in-process.ts';

interface Seen {
  readonly name: string;
  readonly group: string;
  readonly level: 'ok' | 'warning' | 'error' | 'skipped';
  readonly text: string;
  readonly advice?: string;
}

export interface Examined {
  readonly code: number;
  readonly ok: boolean;
  readonly checks: readonly Seen[];
  /** The only one of that name. */
  check(name: string): Seen;
  /** Names, by level. */
  names(level: Seen['level']): readonly string[];
}

export const anyPorts = ['--listen', '127.0.0.1:0', '--ops-listen', '127.0.0.1:0'];

/** `oncegate doctor --json` on ports and, unless `args` names one, an upstream of its own. Sees that no password gets out. */
export async function doctor(
  t: Test,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<Examined> {
  const where = args[0]?.startsWith('http') ? [] : [(await testUpstream(t)).url];
  const { code, out, err } = await inProcess(['doctor', ...where, ...args, '--json'], env);
  for (const secret of secretsOf([...args, ...Object.values(env)])) {
    t.notOk((out + err).includes(secret), 'no password is printed');
  }
  t.equal(err, '');
  const { ok, checks } = JSON.parse(out) as { ok: boolean; checks: Seen[] };
  t.equal(ok, code === 0, 'ok says what the exit code says');
  return {
    code,
    ok,
    checks,
    check(name) {
      const found = checks.filter((check) => check.name === name);
      if (found.length !== 1) throw new Error(`${found.length} checks of the name ${name}`);
      return found[0] as Seen;
    },
    names: (level) => checks.filter((check) => check.level === level).map(({ name }) => name),
  };
}

function secretsOf(values: readonly (string | undefined)[]): string[] {
  return values
    .filter((value) => value !== undefined)
    .filter((value) => value.startsWith('postgres:'))
    .map((url) => new URL(url).password)
    .filter((password) => password !== '');
}
