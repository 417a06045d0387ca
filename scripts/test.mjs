/** `npm test`: one PostgreSQL for all test files, tap with the given arguments, and a last line that says how it went. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
process.chdir(root);

const skippedTest = /^ *ok \d+ - (.*?) # SKIP (.*)$/gm;
const failedTest = /^( *)not ok \d+ - (.*?)(?: # time=.*)?$(?:\n\1 {2}---\n([\s\S]*?)\n\1 {2}\.\.\.$)?/gm;
const maxReasonLines = 40;

const setup = spawnSync(process.execPath, ['scripts/setup.mjs', 'test', 'build'], { stdio: 'inherit' });
if (setup.status !== 0) process.exit(setup.status ?? 1);

let tap;
let stopped;
// A terminal sends Ctrl-C to tap as well; we stay, to stop the server after it.
const onSignal = (signal) => {
  stopped = signal;
  if (signal !== 'SIGINT' || !process.stdin.isTTY) tap?.kill(signal);
};
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, onSignal);

const { tsImport } = await import('tsx/esm/api');
const { startTestServer } = await tsImport('../test/helpers/postgres.ts', import.meta.url);
const server = await startTestServer();
// `npm test -- --pgbouncer …`: every database of a test is reached through PgBouncer in transaction mode.
const args = process.argv.slice(2).filter((arg) => arg !== '--pgbouncer');
const pooler = args.length < process.argv.length - 2 ? await startPooler(server.url) : null;
try {
  process.exitCode = stopped ? 1 : await runTap(args);
} finally {
  await pooler?.stop();
  await server.stop();
}
if (stopped) process.exitCode = 128 + constants.signals[stopped];

async function startPooler(url) {
  const { hasPgbouncer, startPgbouncer } = await tsImport('../test/helpers/pgbouncer.ts', import.meta.url);
  if (hasPgbouncer) return await startPgbouncer(url);
  await server.stop();
  console.error('pgbouncer is not installed; on Debian: apt-get install pgbouncer');
  process.exit(1);
}

async function runTap(args) {
  // Of this run alone: two may run at a time.
  const output = `.tap/run-${process.pid}.tap`;
  const chosen = args.some((arg) => /^(-R|--reporter)/.test(arg));
  const ownReport = !chosen && !process.stdout.isTTY;
  const reporter = ownReport ? ['--reporter=silent'] : [];
  // tap would run nothing of a folder, and call that a success.
  const wanted = args.flatMap((arg) => (isFolder(arg) ? testsIn(arg) : [arg]));
  tap = spawn(
    process.execPath,
    ['node_modules/.bin/tap', `--output-file=${output}`, ...reporter, ...wanted],
    {
      stdio: 'inherit',
      env: {
        ...process.env,
        ONCEGATE_TEST_SERVER: server.url,
        ...(pooler && { ONCEGATE_TEST_POOLER: pooler.through(server.url) }),
      },
    },
  );
  const code = await new Promise((resolve) => tap.once('exit', (status) => resolve(status ?? 1)));
  // On lines of their own: some reporters end with a control sequence and no line break.
  const elsewhere = args.length === 0 ? 'not covered here: chart and image (.ci/run full)\n' : '';
  const text = existsSync(output) ? readFileSync(output, 'utf8') : '';
  rmSync(output, { force: true });
  console.log(`\n${elsewhere}${ownReport ? failures(text, code) : ''}${skips(text)}${summary(text, code)}`);
  return code;
}

function isFolder(path) {
  return existsSync(path) && statSync(path).isDirectory();
}

function testsIn(folder) {
  return readdirSync(folder, { recursive: true })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join(folder, name));
}

/** What failed, with its reasons, innermost first. tap's own reporters print nothing of it where the environment says `CI`. */
function failures(text, code) {
  if (code === 0) return '';
  const told = [];
  let innerDepth = -1;
  for (const [, indent, name, reasons = ''] of text.matchAll(failedTest)) {
    const isInnermost = innerDepth <= indent.length;
    innerDepth = indent.length;
    told.push(`${indent}failed: ${name}`);
    const lines = reasons.split('\n');
    // Of a whole file, say, that it was killed.
    told.push(
      ...lines
        .filter((line) => isInnermost || /^ *(signal|expired|exitCode):/.test(line))
        .slice(0, maxReasonLines),
    );
  }
  return `${told.join('\n') || `no test failed, but tap ended with ${code}`}\n`;
}

/** A line for each reason: what it kept from running. */
function skips(text) {
  const byReason = new Map();
  for (const [, name, reason] of text.matchAll(skippedTest))
    byReason.set(reason, [...(byReason.get(reason) ?? []), name]);
  return [...byReason].map(([reason, names]) => `skipped: ${names.join(', ')} (${reason})\n`).join('');
}

/** tap ends its output with `# { total: 5, pass: 2, fail: 1, todo: 1, skip: 1 }`, leaving out zeros. */
function summary(text, code) {
  const line = /^# \{ (total: .*) \}$/m.exec(text)?.[1] ?? '';
  const count = (name) => Number(new RegExp(`\\b${name}: (\\d+)`).exec(line)?.[1] ?? 0);
  // A run that broke off has failed, whatever was counted until then.
  const failed = Math.max(count('fail'), code === 0 ? 0 : 1);
  const skipped = count('skip') + count('todo');
  return `${count('pass')} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}
