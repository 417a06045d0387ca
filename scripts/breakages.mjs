/**
 * Proves that tests can fail: applies each known breakage of test/breakages.mjs to a copy of the sources and runs the tests
 * that must catch it. A breakage that no longer applies, or that a test lets pass, is a failure; so is one that is red for
 * another reason than its rule: sources that do not compile, SQL that no server takes, a test that is red without it.
 *   node scripts/breakages.mjs [--json FILE] [--test part of a test's path] [part of a rule's name]
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { tsImport } from 'tsx/esm/api';
import { breakages } from '../test/breakages.mjs';
import { applyEdit, readSources } from './breakage-place.mjs';
import { redTest } from './red-test.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc');
/** Copies at work at one time. */
const lanes = 2;
/** Milliseconds until a test counts as hung. A machine with other work gets six times what the unbroken test took. */
const leastMs = 180_000;
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

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { json: { type: 'string' }, test: { type: 'string', default: '' } },
});
const [only = ''] = positionals;
const trials = breakages
  .filter(({ rule }) => rule.includes(only))
  .flatMap(trialsOf)
  .filter(({ test }) => test.includes(options.test));

/** One breakage under one test. `more`: edits without which it would not be what it is called. */
function trialsOf({ rule, test, alsoBy = [], more = [], ...first }) {
  const edits = [first, ...more];
  const also = alsoBy.map((other) => ({ rule, edits: [...edits, ...(other.more ?? [])], test: other.test }));
  return [{ rule, edits, test }, ...also];
}

const copies = new Set();

/** A copy that a breakage may have for itself; packages are shared. */
function makeCopy(from) {
  const dir = mkdtempSync(join(tmpdir(), 'oncegate-breakage-'));
  copies.add(dir);
  for (const name of copied) cpSync(join(from, name), join(dir, name), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'));
  return dir;
}

/** The files that it changed, or the fault of the first edit that does not find its place. */
function applyTo(dir, edits) {
  const texts = readSources(dir);
  const files = new Set();
  for (const edit of edits) {
    const { file, fault } = applyEdit(texts, edit);
    if (fault !== undefined) return { fault };
    files.add(file);
  }
  for (const file of files) writeFileSync(join(dir, file), texts.get(file));
  return { files: [...files] };
}

const running = new Set();

/** Runs node. What it started goes with it when it is cut. */
async function run(dir, args, limitMs = leastMs) {
  const child = spawn(process.execPath, args, {
    cwd: dir,
    // tap's own limit of 30 s is for a machine with nothing else to do. One red test is enough.
    env: { ...process.env, ONCEGATE_TEST_SERVER: server.url, TAP_TIMEOUT: '1000', TAP_BAIL: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  running.add(child);
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (errors += text));
  let isCut = false;
  const timer = setTimeout(() => {
    isCut = true;
    cut(child);
  }, limitMs);
  const [code] = await once(child, 'close');
  clearTimeout(timer);
  running.delete(child);
  return { code, isCut, output, errors };
}

function cut(child) {
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {}
}

const baselines = new Map();

/** How a test fares when nothing is broken. Once per test. */
function baseline(test) {
  if (!baselines.has(test)) baselines.set(test, measure(test));
  return baselines.get(test);
}

async function measure(test) {
  const began = Date.now();
  const dir = makeCopy(pristine);
  const ended = await run(dir, ['--import=tsx', test], 3 * leastMs);
  rmSync(dir, { recursive: true, force: true });
  return { usualMs: Date.now() - began, red: ended.code === 0 ? null : (redIn(ended) ?? 'it never began') };
}

function redIn({ code, isCut, output }) {
  return redTest(output, isCut ? 'hangs' : `ended with ${code ?? 'a signal'}`);
}

/** Why the copy is no fair one. */
async function faultOf(dir, files) {
  const unusedIsFine = ['--noUnusedLocals', 'false', '--noUnusedParameters', 'false'];
  if (files.some((file) => /^src\/.*\.ts$/.test(file))) {
    const { code, output } = await run(dir, [tsc, '-p', 'tsconfig.src.json', ...unusedIsFine]);
    if (code !== 0) return `it does not compile: ${output.split('\n')[0]}`;
  }
  if (files.some((file) => /\/sql\/|^migrations\//.test(file))) {
    const { code, errors } = await run(dir, ['--import=tsx', 'scripts/prepare-statements.ts']);
    if (code !== 0) return `the server does not take it: ${errors.split('\n')[0]}`;
  }
  return null;
}

async function check({ edits, test }) {
  const { usualMs, red: redAnyway } = await baseline(test);
  if (redAnyway !== null) return { fault: `${test} is red without it: ${redAnyway}` };
  const dir = makeCopy(pristine);
  try {
    const { files, fault: lost } = applyTo(dir, edits);
    if (lost !== undefined) return { fault: `does not apply any more: ${lost}` };
    const src = { extends: './tsconfig.json', include: ['src'] };
    writeFileSync(join(dir, 'tsconfig.src.json'), JSON.stringify(src));
    const fault = await faultOf(dir, files);
    if (fault !== null) return { fault, files };
    const ended = await run(dir, ['--import=tsx', test], Math.max(leastMs, 6 * usualMs));
    if (ended.code === 0) return { fault: `not caught by ${test}`, files };
    const red = redIn(ended);
    if (red !== null) return { red, files };
    return { fault: `${test} never began: ${lastLine(ended.errors)}`, files };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function lastLine(text) {
  return text.trim().split('\n').at(-1);
}

const results = [];

async function work(queue) {
  for (let trial = queue.shift(); trial !== undefined; trial = queue.shift()) {
    const began = Date.now();
    const { fault = null, red = null, files = [] } = await check(trial);
    const seconds = Math.round((Date.now() - began) / 100) / 10;
    const { rule, test } = trial;
    results.push({ rule, file: files.join(', '), test, caught: fault === null, red, fault, seconds });
    const how = fault === null ? `caught by ${test}: ${red}` : `FAILED: ${fault}`;
    console.log(`[${results.length}/${trials.length}] ${rule}\n    ${how} (${seconds} s)`);
  }
}

function table() {
  const order = new Map(trials.map(({ rule, test }, at) => [`${rule} ${test}`, at]));
  const at = ({ rule, test }) => order.get(`${rule} ${test}`);
  const sorted = results.toSorted((a, b) => at(a) - at(b));
  const lines = sorted.map(
    ({ rule, test, red, fault }) => `| ${rule} | ${test} | ${red ?? `**${fault}**`} |`,
  );
  return ['', '| rule broken | test file | red |', '|---|---|---|', ...lines, ''].join('\n');
}

const { startTestServer } = await tsImport('../test/helpers/postgres.ts', import.meta.url);
const server = await startTestServer();
/** The tree may change while this runs. */
const pristine = makeCopy(root);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
  process.once(signal, () => {
    for (const child of running) cut(child);
    for (const dir of copies) rmSync(dir, { recursive: true, force: true });
    process.exit(1);
  });
try {
  const queue = [...trials];
  await Promise.all(Array.from({ length: lanes }, () => work(queue)));
} finally {
  rmSync(pristine, { recursive: true, force: true });
  await server.stop();
}
const failed = results.filter(({ caught }) => !caught);
if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(results, null, 2)}\n`);
console.log(table());
for (const { rule, fault } of failed) console.log(`FAILED  ${rule}: ${fault}`);
console.log(`breakages: ${results.length - failed.length} passed, ${failed.length} failed`);
process.exit(failed.length === 0 && results.length > 0 ? 0 : 1);
