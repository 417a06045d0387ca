import cluster, { type Worker } from 'node:cluster';
import { type Answers, type Order, type Question, type Said, workerVariable } from './worker-channel.ts';

/** How a worker came to its end. */
export interface End {
  readonly code: number;
  readonly killedBy: string | null;
}

/** Milliseconds for an answer: longer than a worker takes to give up on its store. One that is that busy is left out. */
const answerMs = 6_000;

/** One worker, from the first process's side. */
export class WorkerLine {
  readonly number: number;
  readonly #worker: Worker;
  /** Never rejects. */
  readonly ended: Promise<End>;
  /** The URL of the data port, once it serves. */
  readonly served: Promise<string>;
  readonly #waiting = new Map<number, (answer: Answers[keyof Answers]) => void>();
  /** Asked and not answered: whoever asks for the same meanwhile waits with it. */
  readonly #open = new Map<keyof Answers, Promise<Answers[keyof Answers] | undefined>>();
  #questions = 0;
  heardMs = performance.now();

  constructor(number: number) {
    this.number = number;
    const worker = cluster.fork({ [workerVariable]: String(number) });
    this.#worker = worker;
    this.ended = new Promise((resolve) => {
      worker.once('exit', (code: number | null, killedBy: string | null) =>
        resolve({ code: code ?? 1, killedBy }),
      );
      // Never started, for instance for want of processes: then there is no exit.
      worker.once('error', () => resolve({ code: 1, killedBy: null }));
    });
    this.served = new Promise((resolve) => {
      worker.on('message', (said: Said) => {
        this.heardMs = performance.now();
        if (said.kind === 'answer') this.#waiting.get(said.question)?.(said.answer);
        else resolve(said.dataUrl);
      });
    });
  }

  drain(signal: NodeJS.Signals): void {
    const order: Order = { drain: signal };
    // One that has just ended takes no order.
    this.#worker.send(order, () => {});
  }

  kill(): void {
    this.#worker.process.kill('SIGKILL');
  }

  /** undefined: it did not answer in time. */
  async ask<About extends keyof Answers>(about: About): Promise<Answers[About] | undefined> {
    const open = this.#open.get(about) ?? this.#ask(about).finally(() => this.#open.delete(about));
    this.#open.set(about, open);
    return (await open) as Answers[About] | undefined;
  }

  #ask(about: keyof Answers): Promise<Answers[keyof Answers] | undefined> {
    const question: Question = { question: this.#questions++, about };
    return new Promise((resolve) => {
      const end = (answer: Answers[keyof Answers] | undefined): void => {
        clearTimeout(timer);
        this.#waiting.delete(question.question);
        resolve(answer);
      };
      const timer = setTimeout(end, answerMs, undefined);
      this.#waiting.set(question.question, end);
      // One that has just ended never answers.
      this.#worker.send(question, (error) => error && end(undefined));
    });
  }
}
