import cluster from 'node:cluster';
import { routeLines } from '../config/describe.ts';
import { exposureWarnings } from '../doctor/judge-exposure.ts';
import { assertFree, listen } from '../listen.ts';
import type { Running, StartOptions } from '../main.ts';
import { memoryShare, workerFlags } from '../memory.ts';
import { createOpsServer } from '../ops/server.ts';
import { mergeMetrics, metricsContentType } from '../telemetry/metrics.ts';
import { type Answers, WorkerEnded } from './worker-channel.ts';
import { WorkerLine } from './worker-line.ts';

/** Milliseconds before a worker that ended is replaced: one that cannot live must not take the machine. */
const replaceMs = 1_000;
/** Milliseconds between looks whether all workers still answer, and after how long of silence one is ended. */
const lookMs = 5_000;
const silenceMs = 30_000;
/**
 * Milliseconds beyond `drain.max` for a worker to end: the store has 10 s more (`lastSettleMs` and `lastWordsMs` in main.ts), and all
 * else is quick. One that is suspended never ends.
 */
const drainMarginMs = 20_000;

/**
 * Several processes on one port, for more cores than one: each is an instance of its own, with its own lease, connections and
 * memory, as if they were replicas. This one only hands connections out, replaces workers that end, and speaks on the ops port.
 */
export async function startWorkers({ config, policies, log, signal }: StartOptions): Promise<Running> {
  for (const warning of [...config.warnings, ...exposureWarnings(config)]) log.warn(warning);
  await assertFree(config.listen);
  const { delayMs, maxMs } = config.drain;
  const workers = new Workers(config.workers, log, (hurry) => (hurry ? 0 : delayMs) + maxMs + drainMarginMs);
  // Only while it starts; later `drain` is told with which signal.
  const onAbort = (): void => void workers.stop('SIGTERM').catch(() => {});
  signal?.addEventListener('abort', onAbort);
  let state: 'starting' | 'serving' | 'draining' = 'starting';
  const health = {
    notStarted: () => (state === 'starting' ? 'starting' : null),
    notReady: async () => (state === 'serving' ? await workers.notReady() : state),
    metrics: {
      contentType: metricsContentType,
      text: async () => await mergeMetrics(await workers.askAll('metrics')),
      json: async () => (await workers.askAll('metrics')).flat(),
    },
  };
  const ops = createOpsServer(health);
  try {
    const opsUrl = await listen(ops, config.listen.ops, 'ops');
    // The first one alone: it migrates, and what is wrong is said once.
    const dataUrl = await workers.add(1);
    await Promise.all(Array.from({ length: config.workers - 1 }, (_, i) => workers.add(i + 2)));
    const routes = routeLines(config, policies.defaults.upstream.origin);
    log.info({ data: dataUrl, ops: opsUrl, workers: config.workers, routes }, 'serving');
    state = 'serving';
    const drain = async (hurry: boolean): Promise<void> => {
      state = 'draining';
      try {
        await workers.stop(hurry ? 'SIGINT' : 'SIGTERM');
      } finally {
        await ops.close();
      }
    };
    let drained: Promise<void> | null = null;
    signal?.removeEventListener('abort', onAbort);
    return { dataUrl, opsUrl, health, drain: (hurry) => (drained ??= drain(hurry)) };
  } catch (error) {
    await workers.stop('SIGTERM').catch(() => {});
    await ops.close();
    throw error;
  }
}

class Workers {
  readonly #log: StartOptions['log'];
  readonly #running = new Set<WorkerLine>();
  readonly #serving = new Set<WorkerLine>();
  readonly #watch = setInterval(() => this.#endSilent(), lookMs);
  readonly #stopMs: (hurry: boolean) => number;
  #isStopping = false;
  #stopped: Promise<void> | null = null;

  /** `stopMs`: after so many milliseconds a worker that was told to stop is ended. */
  constructor(count: number, log: StartOptions['log'], stopMs: (hurry: boolean) => number) {
    this.#log = log;
    this.#stopMs = stopMs;
    // At a second signal too. Most end by themselves when this process does, but not one that is suspended.
    process.once('exit', () => {
      for (const worker of this.#running) worker.kill();
    });
    // Else NaN, a gauge before its first look, would arrive as null.
    cluster.setupPrimary({
      serialization: 'advanced',
      execArgv: [...process.execArgv, ...workerFlags(count, memoryShare(count))],
    });
  }

  /** Resolves with the URL of the data port when it serves. Rejects if it ends before. */
  async add(number: number): Promise<string> {
    if (this.#isStopping) throw new WorkerEnded(0);
    const worker = new WorkerLine(number);
    this.#running.add(worker);
    const ended = worker.ended.then((end) => {
      this.#serving.delete(worker);
      if (!this.#isStopping) this.#running.delete(worker);
      return end;
    });
    const dataUrl = await Promise.race([worker.served, ended]);
    if (typeof dataUrl !== 'string') throw new WorkerEnded(dataUrl.code);
    this.#serving.add(worker);
    void ended.then(({ code, killedBy }) => {
      if (this.#isStopping) return;
      this.#log.error({ worker: number, code, signal: killedBy }, 'a worker ended; another takes its place');
      this.#replace(number);
    });
    return dataUrl;
  }

  #replace(number: number): void {
    setTimeout(() => {
      if (!this.#isStopping) this.add(number).catch(() => this.#replace(number));
    }, replaceMs);
  }

  /** A process that hangs holds its connections for ever; its requests become unknown, as after a crash. */
  #endSilent(): void {
    for (const worker of this.#serving) {
      void worker.ask('readiness');
      if (performance.now() - worker.heardMs < silenceMs) continue;
      this.#log.error({ worker: worker.number }, 'a worker does not answer any more, and is ended');
      worker.kill();
    }
  }

  /** Ready while anyone is: a connection goes to whoever is there. One that hangs must not hold up the probe. */
  async notReady(): Promise<string | null> {
    const asked = [...this.#serving].map((worker) => worker.ask('readiness'));
    const mustBeReady = async (answer: Promise<string | null | undefined>): Promise<null> => {
      const fault = await answer;
      if (fault !== null) throw new Error(fault ?? 'no worker answers');
      return fault;
    };
    try {
      return await Promise.any(asked.map(mustBeReady));
    } catch (error) {
      const [first] = (error as AggregateError).errors as Error[];
      return first?.message ?? 'no worker serves';
    }
  }

  async askAll<About extends keyof Answers>(about: About): Promise<Answers[About][]> {
    const answers = await Promise.all([...this.#serving].map((worker) => worker.ask(about)));
    return answers.filter((answer) => answer !== undefined);
  }

  /** Resolves when all have ended; rejects if one of them ended badly, or did not end in time. */
  stop(signal: NodeJS.Signals): Promise<void> {
    this.#stopped ??= this.#stop(signal);
    return this.#stopped;
  }

  async #stop(signal: NodeJS.Signals): Promise<void> {
    this.#isStopping = true;
    clearInterval(this.#watch);
    const left = new Set(this.#running);
    for (const worker of left) {
      worker.drain(signal);
      void worker.ended.then(() => left.delete(worker));
    }
    const timer = setTimeout(
      () => {
        for (const worker of left) {
          this.#log.error({ worker: worker.number }, 'a worker did not stop in time, and is ended');
          worker.kill();
        }
      },
      this.#stopMs(signal === 'SIGINT'),
    );
    const ends = await Promise.all([...this.#running].map((worker) => worker.ended));
    clearTimeout(timer);
    const bad = ends.find(({ code }) => code !== 0);
    if (bad !== undefined) throw new WorkerEnded(bad.code);
  }
}
