import t from 'tap';
import { blocking, type Check, type Finding, failure, ok, warning } from '../../src/doctor/check.ts';
import { examine, type Step, skipAll } from '../../src/doctor/examine.ts';
import { exitCodeOf, jsonOf, lineOf, verdictOf } from '../../src/doctor/report.ts';
import { roughly } from '../../src/doctor/roughly.ts';
import { OncegateError } from '../../src/errors.ts';

const step = (name: string, needs: string[], found: Finding | Error): Step<null> => ({
  name,
  needs,
  look: async () => {
    if (found instanceof Error) throw found;
    return found;
  },
});

async function run(steps: readonly Step<null>[]): Promise<Check[]> {
  const checks: Check[] = [];
  for await (const check of examine('Store', steps, null)) checks.push(check);
  return checks;
}

t.test('what builds on a fault is not looked at, and the root of it is named', async (t) => {
  const checks = await run([
    step('a', [], failure('broken', 'mend it', 'schema_mismatch')),
    step('b', ['a'], ok('never seen')),
    step('c', ['b'], ok('never seen')),
    step('d', [], warning('risky', 'think')),
    step('e', ['d'], ok('seen')),
    step('f', [], blocking('not yet', 'wait')),
    step('g', ['f'], ok('never seen')),
  ]);
  t.same(
    checks.map(({ name, level, text }) => [name, level, text]),
    [
      ['a', 'error', 'broken'],
      ['b', 'skipped', 'not looked at, because of a'],
      ['c', 'skipped', 'not looked at, because of a'],
      ['d', 'warning', 'risky'],
      ['e', 'ok', 'seen'],
      ['f', 'warning', 'not yet'],
      ['g', 'skipped', 'not looked at, because of f'],
    ],
  );
  t.equal(exitCodeOf(checks), 3);
});

t.test('a look that fails: one of the server costs that look, one of ours all after it', async (t) => {
  const checks = await run([
    step('a', [], new Error('division by zero')),
    step('b', [], ok('seen')),
    step('c', [], new OncegateError('store_unreachable', 'gone')),
    step('d', [], ok('never seen')),
  ]);
  t.match(checks, [
    { level: 'warning', text: 'check failed: division by zero' },
    { level: 'ok' },
    { level: 'error', text: 'check failed: gone', exitCode: 4 },
    { level: 'skipped', text: /because of c/ },
  ]);
  t.match([...skipAll('Store', [step('x', [], ok(''))], 'y')], [{ name: 'x', text: /because of y/ }]);
});

t.test('the report: signs, advice below, a verdict, the exit code of the first fault', async (t) => {
  const checks: Check[] = [
    { group: 'Config', name: 'config', ...ok('valid') },
    { group: 'Config', name: 'node', ...warning('old', 'take a new one') },
    { group: 'Store', name: 'reachable', ...failure('gone', 'one\ntwo', 'store_unreachable') },
    { group: 'Store', name: 'schema', level: 'skipped', text: 'because' },
    { group: 'Upstream', name: 'upstream', ...failure('gone', 'start it') },
  ];
  const text = checks.map((check, i) => lineOf(check, checks[i - 1]?.group ?? null)).join('');
  t.equal(
    text,
    `Config
  ✓ config       valid
  ! node         old
                 take a new one

Store
  ✗ reachable    gone
                 one
                 two
  - schema       because

Upstream
  ✗ upstream     gone
                 start it
`,
  );
  t.equal(verdictOf(checks), '\n2 faults, 1 warning, 1 not looked at\n');
  t.equal(verdictOf(checks.slice(0, 2)), '\nno faults, 1 warning\n');
  t.equal(verdictOf(checks.slice(0, 1)), '\nall is well\n');
  t.equal(exitCodeOf(checks), 4);
  t.equal(exitCodeOf(checks.slice(0, 2)), 0);
  t.same(JSON.parse(jsonOf(checks.slice(1, 4))), {
    ok: false,
    checks: [
      { name: 'node', group: 'Config', level: 'warning', text: 'old', advice: 'take a new one' },
      { name: 'reachable', group: 'Store', level: 'error', text: 'gone', advice: 'one\ntwo' },
      { name: 'schema', group: 'Store', level: 'skipped', text: 'because' },
    ],
  });
});

t.test('times as people say them', async (t) => {
  t.same([0.44, 12.4, 1_500, 2_600, 90_000, 150_000, 86_400_000, 3 * 86_400_000].map(roughly), [
    '0.4 ms',
    '12 ms',
    '1500 ms',
    '3 s',
    '90 s',
    '3 min',
    '24 h',
    '3 d',
  ]);
});
