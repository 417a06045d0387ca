/** What the checks of image and chart share: a cache outside of the clone, steps with their times, and commands. */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Tools and base images take minutes to make: every clone of this user shares them. */
export const cacheDir = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'oncegate-ci');
mkdirSync(cacheDir, { recursive: true });

/** A failure that a person reads; it needs no stack. */
export class CheckFailed extends Error {}

export function check(isTrue, text) {
  if (!isTrue) throw new CheckFailed(text);
}

let stopped = null;

/** Says what is done before and how long it took after. */
export async function step(label, work) {
  check(stopped === null, `stopped by ${stopped}`);
  const began = performance.now();
  process.stdout.write(`${label} …\n`);
  const result = await work();
  process.stdout.write(`  ${((performance.now() - began) / 1000).toFixed(1)} s\n`);
  return result;
}

/** The output of a command; it is quiet unless it fails. */
export function run(command, args, options = {}) {
  const { status, stdout, output } = attempt(command, args, options);
  check(status === 0, `${command} ${args.join(' ')}\n${lastLines(output)}\nended with ${status}`);
  return stdout;
}

/** Like `run`, for commands that may fail. A command that is not there has status 127, as in a shell. */
export function attempt(command, args, options = {}) {
  const done = spawnSync(command, args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28, ...options });
  if (done.error?.code === 'ENOENT')
    return { status: 127, stdout: '', output: `${command} is not installed` };
  if (done.error) throw done.error;
  return {
    status: done.status ?? done.signal,
    stdout: done.stdout,
    output: `${done.stdout}${done.stderr}`,
  };
}

function lastLines(text) {
  return text.trimEnd().split('\n').slice(-30).join('\n');
}

/** Runs a whole check: a failed one prints its reason, and the exit code says how it went. */
export async function main(name, work) {
  const began = performance.now();
  // Containers have users of their own, who must be able to read what we make.
  process.umask(0o022);
  // What was made must be removed: the running step goes on to its end, which Ctrl-C hastens for the commands in it.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => (stopped = signal));
  try {
    await work();
    process.stdout.write(`${name}: passed in ${((performance.now() - began) / 1000).toFixed(0)} s\n`);
  } catch (error) {
    process.stderr.write(`${error instanceof CheckFailed ? error.message : error.stack}\n${name}: FAILED\n`);
    process.exitCode = 1;
  }
}
