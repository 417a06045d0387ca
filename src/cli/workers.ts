import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { listen, opsSetting, type Running, type StartOptions } from '../main.ts';
import { createOpsServer } from '../ops/server.ts';
import { mergeMetrics, metricsContentType } from '../telemetry/metrics.ts';
import { type Answers, type Question, type Said, WorkerEnded, workerVariable } from './worker-channel.ts';

/** Milliseconds before a worker that ended is replaced: one that cannot live must not take the machine. */
const replaceMs = 1_000;
/** Milliseconds for a worker to answer; one that is that busy is left out. */
const answerMs = 1_000;

/**
 * Several processes on one port, for more cores than one: each is an instance of its own, with its own lease, connections and
 * memory, as if they were replicas. This one only hands connections out, replaces workers that end, and speaks on the ops port.
 */
export async function startWorkers(options: StartOptions): Promise<Running> {
  const { config, log, signal } = options;
  const workers = new Workers(log);
  // Only while it starts; later `drain` is told with which signal.
  const onAbort = (): void => void workers.stop('SIGTERM').catch(() => {});
  signal?.addEventListener('abort', onAbort);
  let ops: ReturnType<typeof createOpsServer> | null = null;
  try {
    // The first one alone: it migrates, and what is wrong is said once.
    const dataUrl = await workers.add(1);
    await Promise.all(Array.from({ length: config.workers - 1 }, (_, i) => workers.add(i + 2)));
    let isDraining = false;
    const health = {
      notReady: async () => (isDraining ? 'draining' : await workers.notReady()),
      metrics: {
        contentType: metricsContentType,
        text: async () => await mergeMetrics(await workers.askAll('metrics')),
        json: async () => (await workers.askAll('metrics')).flat(),
      },
    };
    ops = createOpsServer(health);
    const opsUrl = await listen(ops, config.listen.ops, opsSetting);
    log.info({ data: dataUrl, ops: opsUrl, workers: config.workers }, 'serving');
    const opened = ops;
    const drain = async (hurry: boolean): Promise<void> => {
      isDraining = true;
      await workers.stop(hurry ? 'SIGINT' : 'SIGTERM').finally(() => opened.close());
    };
    let drained: Promise<void> | null = null;
    signal?.removeEventListener('abort', onAbort);
    return { dataUrl, opsUrl, health, drain: (hurry) => (drained ??= drain(hurry)) };
  } catch (error) {
    await workers.stop('SIGTERM').catch(() => {});
    await ops?.close();
    throw error;
  }
}

class Workers {
  readonly #log: StartOptions['log'];
  readonly #waiting = new Map<number, (answer: Answers[keyof Answers]) => void>();
  readonly #serving = new Set<Worker>();
  /** Each with its exit code to come. */
  readonly #running = new Map<Worker, Promise<number>>();
  #questions = 0;
  #isStopping = false;
  #stopped: Promise<void> | null = null;

  constructor(log: StartOptions['log']) {
    this.#log = log;
    // Else NaN, a gauge before its first look, would arrive as null.
    cluster.setupPrimary({ serialization: 'advanced' });
  }

  /** Resolves when it serves. Rejects if it ends before. */
  async add(number: number): Promise<string> {
    if (this.#isStopping) throw new WorkerEnded(0);
    const worker = cluster.fork({ [workerVariable]: String(number) });
    const ended = once(worker, 'exit').then(([code, killedBy]) => {
      this.#serving.delete(worker);
      if (!this.#isStopping) this.#running.delete(worker);
      return { code: (code as number | null) ?? 1, killedBy: killedBy as string | null };
    });
    const served = new Promise<string>((resolve) => {
      worker.on('message', (said: Said) => {
        if (said.kind === 'answer') this.#waiting.get(said.question)?.(said.answer);
        else resolve(said.dataUrl);
      });
    });
    this.#running.set(
      worker,
      ended.then(({ code }) => code),
    );
    const dataUrl = await Promise.race([
      served,
      ended.then(({ code }) => {
        throw new WorkerEnded(code);
      }),
    ]);
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
      if (this.#isStopping) return;
      this.add(number).catch(() => this.#replace(number));
    }, replaceMs);
  }

  /** Ready while anyone is: a connection goes to whoever is there. */
  async notReady(): Promise<string | null> {
    const faults = await this.askAll('readiness');
    if (faults.includes(null)) return null;
    return faults[0] ?? 'no worker answers';
  }

  async askAll<About extends keyof Answers>(about: About): Promise<Answers[About][]> {
    const answers = await Promise.all([...this.#serving].map((worker) => this.#ask(worker, about)));
    return answers.filter((answer) => answer !== undefined);
  }

  #ask<About extends keyof Answers>(worker: Worker, about: About): Promise<Answers[About] | undefined> {
    const question: Question = { question: this.#questions++, about };
    return new Promise((resolve) => {
      const end = (answer: Answers[About] | undefined): void => {
        clearTimeout(timer);
        this.#waiting.delete(question.question);
        resolve(answer);
      };
      const timer = setTimeout(end, answerMs, undefined);
      this.#waiting.set(question.question, (answer) => end(answer as Answers[About]));
      // One that has just ended never answers.
      worker.send(question, (error) => error && end(undefined));
    });
  }

  /** Resolves when all have ended; rejects if one of them ended badly. Said once: a second signal would end them at once. */
  stop(signal: NodeJS.Signals): Promise<void> {
    this.#stopped ??= this.#stop(signal);
    return this.#stopped;
  }

  async #stop(signal: NodeJS.Signals): Promise<void> {
    this.#isStopping = true;
    for (const worker of this.#running.keys()) worker.process.kill(signal);
    const bad = (await Promise.all(this.#running.values())).find((code) => code !== 0);
    if (bad !== undefined) throw new WorkerEnded(bad);
  }
}
