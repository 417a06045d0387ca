import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

export const root = join(import.meta.dirname, '..');

/** A file of this folder, compiled as Oncegate is: every contender runs on Node alone. */
export const compiled = (name: string): string => join(root, '.cache/bench/js', `${name}.js`);

const readyWithinMs = 30_000;
/** Then it is killed. */
const stopWithinMs = 10_000;

export interface Child {
  readonly pid: number;
  /** For children of ours that speak over a channel: one message there, one back. */
  ask<Answer>(message: object): Promise<Answer>;
  /** The first message, for children that say something by themselves. */
  told<Answer>(): Promise<Answer>;
  /** Resolves when it accepts connections. */
  listening(port: number): Promise<void>;
  /** For those that end by themselves: rejects unless that went well. */
  ended(): Promise<void>;
  stop(): Promise<void>;
}

interface How {
  readonly env?: NodeJS.ProcessEnv;
  /** Default: this Node. */
  readonly command?: string;
}

export type StartChild = (name: string, args: readonly string[], how?: How) => Child;

/** A process of its own, both outputs going to `logFile`. */
export function startChild(args: readonly string[], logFile: string, how: How = {}): Child {
  const log = openSync(logFile, 'a');
  const child = spawn(how.command ?? process.execPath, args, {
    cwd: root,
    env: { ...process.env, ...how.env },
    stdio: ['ignore', log, log, 'ipc'],
  });
  closeSync(log);
  const ending = endingOf(child, args, logFile);
  const gone = ending.then((): never => {
    throw new Error(`${args.join(' ')} ended too early; its log: ${logFile}`);
  });
  // Nobody listens when it ends as it should.
  gone.catch(() => {});
  return {
    pid: child.pid ?? 0,
    ask: async <Answer>(message: object) => {
      child.send(message);
      return await Promise.race([nextMessage<Answer>(child), gone]);
    },
    told: async <Answer>() => await Promise.race([nextMessage<Answer>(child), gone]),
    listening: (port) => Promise.race([listening(port), gone]),
    ended: () => ending,
    stop: () => stop(child),
  };
}

async function nextMessage<Answer>(child: ChildProcess): Promise<Answer> {
  const [answer] = (await once(child, 'message')) as [Answer];
  return answer;
}

/** Rejects with what it last said, unless the process ends with 0. */
function endingOf(child: ChildProcess, args: readonly string[], logFile: string): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      if (code === 0) return resolve();
      const said = readFileSync(logFile, 'utf8').trim().split('\n').slice(-10).join('\n');
      reject(new Error(`${args.join(' ')} ended with ${code ?? signal}:\n${said}`));
    });
  });
}

async function listening(port: number): Promise<void> {
  const untilMs = performance.now() + readyWithinMs;
  while (!(await accepts(port))) {
    if (performance.now() > untilMs) throw new Error(`nothing listens on port ${port}`);
    await delay(50);
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGINT');
  const timer = setTimeout(() => child.kill('SIGKILL'), stopWithinMs);
  await exited;
  clearTimeout(timer);
}
