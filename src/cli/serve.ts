import cluster from 'node:cluster';
import { isatty } from 'node:tty';
import { compilePolicies } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import type { Running, StartOptions } from '../main.ts';
import type { Logger } from '../telemetry/logger.ts';
import { type Args, settingsOf, upstreamWord } from './args.ts';
import type { Command } from './commands.ts';
import { configFile } from './config-file.ts';
import { collectAlone, collectOldSooner, giveBackWhenIdle, limitNewSpace } from './garbage.ts';
import { nodeWarning } from './node-line.ts';
import { requireStore } from './require-store.ts';
import type { Io } from './run.ts';
import { WorkerEnded, workerVariable } from './worker-channel.ts';

export async function serveCommand(command: Command, args: Args, io: Io): Promise<number> {
  const { [workerVariable]: worker, ...env } = io.env;
  if (cluster.isPrimary || worker === undefined)
    return await serveUntilSignal(servingOf(command, args, { ...io, env }));
  const { answerFirstProcess } = await import('./worker.ts');
  try {
    const serving = servingOf(command, args, { ...io, env });
    return await serveUntilSignal({ ...serving, worker }, answerFirstProcess);
  } finally {
    // It must not keep a worker alive that has drained, or could not start.
    process.channel?.unref();
  }
}

function servingOf(command: Command, args: Args, io: Io): Serving {
  const loaded = loadConfig({
    ...configFile(args, io),
    flags: [...upstreamWord(args), ...settingsOf(command, args)],
    env: io.env,
  });
  const node = nodeWarning(process.version, new Date());
  const config = { ...loaded, warnings: [...loaded.warnings, ...(node === null ? [] : [node])] };
  return { config, policies: compilePolicies(config), storeTarget: requireStore(config.store) };
}

type Serving = Omit<StartOptions, 'log' | 'signal'>;

/** What is missing was told before; only now are the servers loaded. */
export async function serveUntilSignal(
  what: Serving,
  onServing?: (running: Running) => void,
): Promise<number> {
  collectAlone();
  collectOldSooner();
  limitNewSpace();
  const { createLogger, sharedOutput } = await import('../telemetry/logger.ts');
  const { consoleLines } = await import('../telemetry/console-lines.ts');
  const { level } = what.config.log;
  const output = process.stdout.isTTY
    ? consoleLines(process.stdout)
    : what.config.workers > 1
      ? sharedOutput()
      : undefined;
  const log = createLogger(level, output);
  try {
    return await untilSignal({ ...what, log }, onServing);
  } finally {
    await flushed(log);
  }
}

/** Milliseconds in which one stop may reach us twice: from the process group, and forwarded by npm or a shell. */
const echoMs = 300;
const hangupIgnored = 'signal ignored: the config is not read again while it runs; to change it, restart';

/**
 * Serves until SIGTERM or SIGINT, then drains. A second signal ends at once; the sweeper of another instance settles the rest.
 * SIGHUP ends nothing, for elsewhere it means "read your config again"; only at a terminal it says that this was closed.
 */
async function untilSignal(
  options: Omit<StartOptions, 'signal'>,
  onServing?: (running: Running) => void,
): Promise<number> {
  const { config, log, worker } = options;
  const start =
    config.workers > 1 && worker === undefined
      ? (await import('./workers.ts')).startWorkers
      : (await import('../main.ts')).start;
  const stop = new AbortController();
  let firstMs: number | null = null;
  let told: (signal: NodeJS.Signals) => void = () => {};
  const first = new Promise<NodeJS.Signals>((resolve) => (told = resolve));
  const onSignal = (signal: NodeJS.Signals): void => {
    if (firstMs !== null && performance.now() - firstMs < echoMs) return;
    if (firstMs !== null) {
      // Seen by the demo too, which is quiet otherwise.
      log.error({ signal }, 'stopping without waiting; what was running becomes unknown');
      log.flush(() => process.exit(1));
      return;
    }
    firstMs = performance.now();
    log.info({ signal }, 'draining');
    stop.abort();
    told(signal);
  };
  // Once it is closed, nobody could tell any more.
  const hasTerminal = isatty(0);
  const onHangup = (): void => {
    if (!hasTerminal) log.error({ signal: 'SIGHUP' }, hangupIgnored);
    else if (firstMs === null) onSignal('SIGHUP');
  };
  // A worker hears the first process alone, which gets every signal of the group too, and speaks and stops for all.
  const ignore = (): void => {};
  const heard = worker === undefined ? { onSignal, onHangup } : { onSignal: ignore, onHangup: ignore };
  process.on('SIGTERM', heard.onSignal).on('SIGINT', heard.onSignal).on('SIGHUP', heard.onHangup);
  if (worker !== undefined) (await import('./worker.ts')).onOrder(onSignal);
  let isServing = false;
  try {
    const running: Running = await start({ ...options, signal: stop.signal });
    isServing = true;
    giveBackWhenIdle();
    onServing?.(running);
    const signal = await first;
    // A person at a terminal has no load balancer that must notice first.
    await running.drain(signal !== 'SIGTERM');
    log.info('stopped');
    return 0;
  } catch (error) {
    // It has said why.
    if (error instanceof WorkerEnded && (isServing || !stop.signal.aborted)) return error.exitCode;
    // Told to stop while it was still waiting for its store: that is no failure.
    if (!stop.signal.aborted) throw error;
    log.info('stopped before it served');
    return 0;
  } finally {
    process.off('SIGTERM', heard.onSignal).off('SIGINT', heard.onSignal).off('SIGHUP', heard.onHangup);
  }
}

function flushed(log: Logger): Promise<void> {
  return new Promise((resolve) => log.flush(() => resolve()));
}
