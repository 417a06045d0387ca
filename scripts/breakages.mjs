/**
 * Proves that tests can fail: applies each known breakage of test/breakages.mjs to a copy of the sources and runs the test
 * that must catch it. A breakage that no longer applies, or that its test lets pass, is a failure.
 *   node scripts/breakages.mjs [part of a rule's name]
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { breakages } from '../test/breakages.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const only = process.argv[2] ?? '';
const wanted = breakages.filter(({ rule }) => rule.includes(only));
const copied = [
  'src',
  'test',
  'migrations',
  'package.json',
  'tsconfig.json',
  '.taprc',
  'config.example.yaml',
  'README.md',
  'docs',
  'scripts',
];

/** A copy that a breakage may have for itself; packages are shared. */
function makeCopy() {
  const dir = mkdtempSync(join(tmpdir(), 'oncegate-breakage-'));
  for (const name of copied) cpSync(join(root, name), join(dir, name), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'));
  return dir;
}

/** `more`: of a breakage that takes more than one edit to be what it is called. */
function applyTo(dir, { more = [], ...first }) {
  return [first, ...more].every(({ file, find, replace }) => {
    const path = join(dir, file);
    const text = readFileSync(path, 'utf8');
    const broken = text.replace(find, () => replace);
    writeFileSync(path, broken);
    return broken !== text;
  });
}

/** The first test of a file that goes red, by name; null: none does. One that hangs is cut, which counts as caught. */
async function firstRed(dir, test) {
  const child = spawn(process.execPath, ['--import=tsx', test], {
    cwd: dir,
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: 90_000,
  });
  let tap = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (tap += text));
  const [code] = await once(child, 'close');
  if (code === 0) return null;
  const red = /^not ok \d+ - (?<name>.*?)(?: # .*| \{)?$/m.exec(tap)?.groups.name;
  const begun = [...tap.matchAll(/^# Subtest: (?<name>.*)$/gm)].at(-1)?.groups.name;
  return red ?? `${begun ?? 'at its start'} (ended with ${code ?? 'a signal'})`;
}

async function check(breakage) {
  const dir = makeCopy();
  try {
    if (!applyTo(dir, breakage)) return { fault: 'does not apply any more' };
    const red = await firstRed(dir, breakage.test);
    return red === null ? { fault: `not caught by ${breakage.test}` } : { red };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

let failed = 0;
for (const breakage of wanted) {
  const began = Date.now();
  const { fault, red } = await check(breakage);
  if (fault !== undefined) failed += 1;
  const seconds = ((Date.now() - began) / 1000).toFixed(1);
  console.log(
    fault === undefined
      ? `caught  ${breakage.rule}\n        by ${breakage.test}: ${red} (${seconds} s)`
      : `FAILED  ${breakage.rule}: ${fault} (${seconds} s)`,
  );
}
console.log(`breakages: ${wanted.length - failed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
