/**
 * What somebody gets who installs the package: packs it, installs it into an empty folder, and runs it there.
 *   node scripts/tarball-check.mjs
 */
import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const began = Date.now();
/** Milliseconds for one command, installing from a slow registry included. */
const patienceMs = 300_000;
/** Milliseconds for a demo that must go to stop its PostgreSQL, which would outlive it otherwise. */
const stopMs = 20_000;

const dir = mkdtempSync(join(tmpdir(), 'oncegate-tarball-'));
// Under root the embedded PostgreSQL runs as nobody, and would keep its data elsewhere if it could not get here.
chmodSync(dir, 0o755);
const app = join(dir, 'app');
mkdirSync(app);

// No wait for load balancers that are not there.
const env = { ...process.env, ONCEGATE_DRAIN_DELAY: '0s' };
const say = (line) => console.log(`${((Date.now() - began) / 1000).toFixed(1).padStart(6)} s  ${line}`);

function expect(isTrue, what, seen) {
  if (!isTrue) throw new Error(`${what}; saw:\n${seen}`);
  say(what);
}

/** What runs now. A stop of ours is handed on to it; the check then fails, and cleans up. */
let current = null;
for (const name of ['SIGINT', 'SIGTERM']) process.on(name, () => current && signal(current.child, 'SIGTERM'));

/** In a process group of its own: `npx` starts a shell that forwards no signal. */
function begin(command, args, cwd) {
  const child = spawn(command, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  const timer = setTimeout(() => signal(child, 'SIGKILL'), patienceMs);
  const running = { child, output: '' };
  current = running;
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      running.output += chunk;
    });
  }
  // Not 'exit': only when its pipes are closed has everything below it ended too.
  running.ended = new Promise((resolve) => {
    child.once('error', (error) => {
      running.output += error.message;
      resolve(null);
    });
    child.once('close', (code) => resolve(code));
  }).finally(() => clearTimeout(timer));
  return running;
}

function signal(child, name) {
  try {
    process.kill(-child.pid, name);
  } catch {} // all of it is gone
}

async function run(command, args, cwd = app) {
  const running = begin(command, args, cwd);
  if ((await running.ended) !== 0) throw new Error(`${command} ${args.join(' ')} failed:\n${running.output}`);
  return running.output;
}

/** Starts the demo on free ports, hands `work` its address, and says with which code it ended on SIGTERM. */
async function withDemo(command, args, work) {
  const ports = ['--listen', '127.0.0.1:0', '--ops-listen', '127.0.0.1:0'];
  const demo = begin(command, [...args, 'demo', ...ports], app);
  try {
    await work(await addressOf(demo));
  } finally {
    signal(demo.child, 'SIGTERM');
    const timer = setTimeout(() => signal(demo.child, 'SIGKILL'), stopMs);
    await demo.ended;
    clearTimeout(timer);
  }
  return await demo.ended;
}

async function addressOf(demo) {
  const line = /stands at (http:\S+)/;
  const told = new Promise((resolve) => {
    demo.child.stdout.on('data', () => line.test(demo.output) && resolve());
  });
  await Promise.race([told, demo.ended]);
  const address = line.exec(demo.output)?.[1];
  if (address === undefined) throw new Error(`the demo did not start:\n${demo.output}`);
  return address;
}

async function charge(address) {
  const headers = { 'Idempotency-Key': 'order-1', 'Content-Type': 'application/json' };
  const answer = await fetch(`${address}/charges`, { method: 'POST', headers, body: '{"amount":10}' });
  const kind = `${answer.status} ${answer.headers.get('idempotency-status')}`;
  return { kind, body: await answer.text() };
}

async function check() {
  await run('npm', ['pack', '--pack-destination', dir], root);
  const tarball = readdirSync(dir).find((name) => name.endsWith('.tgz'));
  say(`packed ${tarball}`);
  await run('npm', ['init', '--yes']);
  await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', join(dir, tarball)]);
  say('installed into an empty folder');

  const version = await run('npx', ['oncegate', 'version']);
  expect(version.includes(tarball.slice(0, -4).replace('-', ' ')), 'npx oncegate version says it', version);
  const overview = await run('npx', ['oncegate']);
  expect(
    overview.includes('Usage: npx oncegate <command>'),
    'npx oncegate says what it can do, under that name',
    overview,
  );

  let paid = '';
  await withDemo('npx', ['oncegate'], async (address) => {
    const [first, second] = [await charge(address), await charge(address)];
    paid = first.body;
    expect(first.kind === '201 executed', 'npx oncegate demo charges', `${first.kind} ${paid}`);
    const isReplay = second.kind === '201 replayed' && second.body === paid;
    expect(isReplay, 'and replays', `${second.kind} ${second.body}`);
  });
  const code = await withDemo(join(app, 'node_modules/.bin/oncegate'), [], async (address) => {
    const { kind, body } = await charge(address);
    const isReplay = kind === '201 replayed' && body === paid;
    expect(isReplay, 'started again, it still replays', `${kind} ${body}`);
  });
  expect(code === 0, 'SIGTERM ends it with exit code 0', code);
}

try {
  await check();
  say('tarball: passed');
} catch (error) {
  console.error(`tarball: failed: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(dir, { recursive: true, force: true });
}
