// Runs test/core under V8's own coverage and fails unless every line, branch and function of every file in src/core ran.
// One thing V8 cannot see: an `if` without `else` whose condition is never false.
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '..');
const c8 = createRequire(import.meta.url).resolve('c8/bin/c8.js');
const counts = mkdtempSync(join(tmpdir(), 'oncegate-coverage-'));

/** Resolves to the exit code. Only failures are worth showing. */
function run(args, env, quiet) {
  return new Promise((done, fail) => {
    let output = '';
    const stdio = ['ignore', quiet ? 'pipe' : 'inherit', 'inherit'];
    const child = spawn(process.execPath, args, { cwd: root, env: { ...process.env, ...env }, stdio });
    child.stdout?.on('data', (chunk) => {
      output += chunk;
    });
    child.on('error', fail);
    child.on('close', (code) => {
      if (code !== 0) process.stdout.write(output);
      done(code ?? 1);
    });
  });
}

const node = ['--enable-source-maps', '--import=tsx'];
const measured = { NODE_V8_COVERAGE: counts };
const list = (folder, ending) => readdirSync(join(root, folder)).filter((name) => name.endsWith(ending));

async function main() {
  let failed = 0;
  for (const name of list('test/core', '.test.ts')) {
    if ((await run([...node, join('test/core', name)], measured, true)) !== 0) failed++;
  }
  if (failed > 0) throw new Error(`${failed} test files failed`);
  // Every file is loaded once more: one that no test imports then counts as not covered, one with only types as covered.
  const files = list('src/core', '.ts').map((name) => `await import('./src/core/${name}');`);
  const loaded = await run([...node, '--input-type=module', '--eval', files.join('')], measured, true);
  if (loaded !== 0) throw new Error('a file of src/core does not load');
  const bounds = [
    '--check-coverage',
    '--per-file',
    '--lines=100',
    '--branches=100',
    '--functions=100',
    '--statements=100',
  ];
  const report = [
    'report',
    `--temp-directory=${counts}`,
    '--include=src/core/**',
    '--reporter=text',
    ...bounds,
  ];
  // c8 would measure itself into the same folder.
  const covered = await run([c8, ...report], { NODE_V8_COVERAGE: '' }, false);
  if (covered !== 0) throw new Error('src/core is not covered');
}

try {
  await main();
} catch (error) {
  console.error(`coverage-core: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(counts, { recursive: true, force: true });
}
