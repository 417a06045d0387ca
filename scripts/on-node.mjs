/**
 * Runs a command on another Node.js than this one:
 *   node scripts/on-node.mjs 24 -- npm test
 *   node scripts/on-node.mjs 24 -- npm run torture -- --short
 * The first `node` on its PATH is the newest of that line at the time it was downloaded, from npm, and kept in the cache of the
 * checks: remove the folder to get a newer one. `--or-skip`: says that it is skipped, and ends with 0, where it cannot be had.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { constants } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { cacheDir } from './steps.mjs';

const usage = 'usage: node scripts/on-node.mjs [--or-skip] MAJOR -- COMMAND …';
const end = process.argv.indexOf('--');
const before = process.argv.slice(2, end === -1 ? undefined : end);
const orSkip = before[0] === '--or-skip';
const [major, ...rest] = orSkip ? before.slice(1) : before;
const [command, ...args] = end === -1 ? [] : process.argv.slice(end + 1);
if (!/^\d+$/.test(major ?? '') || rest.length > 0 || command === undefined) {
  process.stderr.write(`${usage}\n`);
  process.exit(2);
}

const found = findNode(major);
if (typeof found === 'string') runOn(found);
else {
  process.stderr.write(`Node.js ${major} cannot be had: ${found.why}\n`);
  if (orSkip)
    process.stdout.write(
      `SKIPPED on Node.js ${major}: ${args.length ? [command, ...args].join(' ') : command}\n`,
    );
  process.exitCode = orSkip ? 0 : 1;
}

/** The path of its binary, or why there is none. */
function findNode(line) {
  if (process.versions.node.startsWith(`${line}.`)) return process.execPath;
  const name = `node-${process.platform}-${process.arch}`;
  const home = join(cacheDir, `node-${line}`);
  const binary = join(home, 'node_modules', name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
  if (existsSync(binary)) return binary;
  const dir = mkdtempSync(join(cacheDir, 'node-new-'));
  const options = [
    '--no-save',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
    '--fetch-retries=2',
    '--fetch-retry-mintimeout=500',
  ];
  const done = spawnSync('npm', ['install', '--prefix', dir, ...options, `${name}@${line}`], {
    encoding: 'utf8',
  });
  const why = done.error?.message ?? done.stderr.trim().split('\n').slice(0, 5).join('\n');
  if (done.status === 0) {
    try {
      // In one piece, for two may be at it.
      renameSync(dir, home);
    } catch {}
  }
  rmSync(dir, { recursive: true, force: true });
  return existsSync(binary) ? binary : { why };
}

function runOn(node) {
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ''}` };
  // Set by the npm that runs us, and named after its Node: the one below must find its own.
  for (const name of ['npm_node_execpath', 'NODE']) delete env[name];
  const child = spawn(command, args, { stdio: 'inherit', env });
  child.once('error', ({ message }) => {
    process.stderr.write(`${message}\n`);
    process.exitCode = 127;
  });
  child.once('exit', (code, signal) => (process.exitCode = code ?? 128 + constants.signals[signal]));
  // A terminal sends Ctrl-C to the child as well; we stay to say how it ended.
  process.on('SIGINT', () => process.stdin.isTTY || child.kill('SIGINT'));
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
}
