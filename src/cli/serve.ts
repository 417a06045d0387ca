import { compilePolicies } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import type { Running, StartOptions } from '../main.ts';
import type { Logger } from '../telemetry/logger.ts';
import { type Args, settingsOf } from './args.ts';
import type { Command } from './commands.ts';
import { requireStore } from './require-store.ts';
import type { Io } from './run.ts';

export async function serveCommand(command: Command, args: Args, io: Io): Promise<number> {
  const [url] = args.words;
  const file = args.flags.get('config');
  const config = loadConfig({
    ...(typeof file === 'string' ? { file } : {}),
    flags: [
      ...(url === undefined ? [] : [{ from: 'URL', path: ['upstream', 'url'], value: url }]),
      ...settingsOf(command, args),
    ],
    env: io.env,
  });
  const policies = compilePolicies(config);
  const storeTarget = requireStore(config.store);
  return await serveUntilSignal({ config, policies, storeTarget });
}

type Serving = Omit<StartOptions, 'log'>;

/** What is missing was told before; only now are the servers loaded. */
export async function serveUntilSignal(
  what: Serving,
  onServing?: (running: Running) => void,
): Promise<number> {
  const { createLogger } = await import('../telemetry/logger.ts');
  const log = createLogger(what.config.log.level);
  try {
    return await untilSignal({ ...what, log }, onServing);
  } finally {
    await flushed(log);
  }
}

/** Milliseconds in which one stop may reach us twice: from the process group, and forwarded by npm or a shell. */
const echoMs = 300;

/** Serves until SIGTERM or SIGINT, then drains. A second signal ends at once; the sweeper of another instance settles the rest. */
async function untilSignal(options: StartOptions, onServing?: (running: Running) => void): Promise<number> {
  const { start } = await import('../main.ts');
  const { log } = options;
  let firstMs: number | null = null;
  let told: (signal: NodeJS.Signals) => void = () => {};
  const first = new Promise<NodeJS.Signals>((resolve) => (told = resolve));
  const onSignal = (signal: NodeJS.Signals): void => {
    if (firstMs !== null && performance.now() - firstMs < echoMs) return;
    if (firstMs !== null) {
      log.warn({ signal }, 'stopping without waiting');
      log.flush(() => process.exit(1));
      return;
    }
    firstMs = performance.now();
    log.info({ signal }, 'draining');
    told(signal);
  };
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
  try {
    // A signal during the start is obeyed as soon as there is something to take apart.
    const running: Running = await start(options);
    onServing?.(running);
    const signal = await first;
    // A person at a terminal has no load balancer that must notice first.
    await running.drain(signal === 'SIGINT');
    log.info('stopped');
    return 0;
  } finally {
    process.off('SIGTERM', onSignal).off('SIGINT', onSignal);
  }
}

function flushed(log: Logger): Promise<void> {
  return new Promise((resolve) => log.flush(() => resolve()));
}
