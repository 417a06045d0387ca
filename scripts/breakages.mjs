/**
 * Proves that tests can fail: applies each known breakage of test/breakages.mjs to a copy of the sources and runs the test
 * that must catch it. A breakage that no longer applies, or that its test lets pass, is a failure.
 *   node scripts/breakages.mjs [part of a rule's name]
 */
import { spawn } from 'node:child_process';
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

function applyTo(dir, { file, find, replace }) {
  const path = join(dir, file);
  const text = readFileSync(path, 'utf8');
  const broken = text.replace(find, replace);
  if (broken === text) return false;
  writeFileSync(path, broken);
  return true;
}

/** The exit code of one test file; a test that hangs is cut, which counts as caught. */
function run(dir, test) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ['--import=tsx', test], {
      cwd: dir,
      stdio: 'ignore',
      timeout: 90_000,
    });
    child.once('exit', (code, signal) => resolve(code ?? signal));
  });
}

async function check(breakage) {
  const dir = makeCopy();
  try {
    if (!applyTo(dir, breakage)) return 'does not apply any more';
    return (await run(dir, breakage.test)) === 0 ? `not caught by ${breakage.test}` : null;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

let failed = 0;
for (const breakage of wanted) {
  const began = Date.now();
  const fault = await check(breakage);
  if (fault !== null) failed += 1;
  const seconds = ((Date.now() - began) / 1000).toFixed(1);
  console.log(
    `${fault === null ? 'caught' : 'FAILED'}  ${breakage.rule} (${fault ?? breakage.test}, ${seconds} s)`,
  );
}
console.log(`breakages: ${wanted.length - failed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
