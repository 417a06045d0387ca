import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { OncegateError } from '../../errors.ts';
import type { Cluster } from './embedded-cluster.ts';

/** A running server process, ours by birth or left by a process of ours that was killed. */
export interface Postmaster {
  readonly pid: number;
  readonly port: number;
  /** How it ended, once it has. Does not keep this process alive. */
  readonly gone: Promise<string>;
}

/** Short against a start (0.2 s) and a stop (0.1 s); a look costs one small file. */
export const LOOK_AGAIN_MS = 20;
/** A backend stuck in a disk write gets this long before it is dropped; the next start then recovers. */
const FAST_STOP_MS = 10_000;
/** Only for the log line about an adopted server that went away. */
const WATCH_MS = 1000;

/** The caller holds the claim on the directory: whatever serves it has no owner. */
export function findLeftover(cluster: Cluster): Postmaster | undefined {
  const file = readPidFile(cluster);
  if (!file) return undefined;
  if (isServing(cluster, file.pid)) return { ...file, gone: watch(cluster, file.pid) };
  // A dead pid PostgreSQL sees by itself. A pid that is now another program would make it refuse to start; a
  // postgres of another directory is left for it to judge, for the directory may have been moved while in use.
  const program = commandLine(file.pid).split(' ')[0] ?? '';
  if (program !== '' && !program.includes('postgres')) rmSync(pidFile(cluster), { force: true });
  return undefined;
}

const pidFile = (cluster: Cluster): string => join(cluster.dataDir, 'postmaster.pid');

/** Its lines: pid, data directory, start time, port, socket directory, address, shared memory, status. */
export function readPidFile(cluster: Cluster): { pid: number; port: number; ready: boolean } | undefined {
  const lines = readIfThere(pidFile(cluster)).split('\n');
  const pid = Number(lines[0]);
  return pid > 0 ? { pid, port: Number(lines[3]), ready: lines[7]?.trim() === 'ready' } : undefined;
}

/** Of the last start, from the file where PostgreSQL keeps its own command line: a restart should not move. */
export function lastPort(cluster: Cluster): number {
  return Number(/port=(\d+)/.exec(readIfThere(join(cluster.dataDir, 'postmaster.opts')))?.[1] ?? 0);
}

/** Alive and of this directory: a recycled pid has another command line, a zombie has none. */
function isServing(cluster: Cluster, pid: number): boolean {
  return commandLine(pid).includes(` -D ${cluster.dataDir} `);
}

export function commandLine(pid: number): string {
  if (process.platform === 'linux') return readIfThere(`/proc/${pid}/cmdline`).replaceAll('\0', ' ');
  try {
    return execFileSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8' });
  } catch {
    return '';
  }
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function watch(cluster: Cluster, pid: number): Promise<string> {
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      if (isServing(cluster, pid)) return;
      clearInterval(timer);
      resolve('is gone');
    }, WATCH_MS).unref();
  });
}

/** Fast shutdown: clients are cut, everything is written. Returns once the process has ended. */
export async function stopPostmaster(cluster: Cluster, pid: number): Promise<void> {
  for (const signal of ['SIGINT', 'SIGQUIT'] as const) {
    const until = performance.now() + FAST_STOP_MS;
    if (isServing(cluster, pid)) send(pid, signal);
    while (isServing(cluster, pid) && performance.now() < until) await delay(LOOK_AGAIN_MS);
    if (!isServing(cluster, pid)) return;
  }
  throw new OncegateError('embedded_failed', `the embedded PostgreSQL (process ${pid}) does not stop`);
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // It may have ended between the look and the signal.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
