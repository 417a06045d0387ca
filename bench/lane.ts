import { type Answer, Connection } from './connection.ts';
import type { Step } from './traffic.ts';

interface Lead {
  /** null: there is no more to send. */
  nextStep(): Step | null;
  answered(ms: number): void;
  failed(error: Error): void;
}

const replayed = '\r\nIdempotent-Replayed: true\r\n';

/** Connections that go in step: all send the same at once, and the next when each of them has its answer. */
export class Lane {
  readonly #lead: Lead;
  readonly #connections: readonly Connection[];
  #step: Step | null = null;
  #waiting = 0;
  #replayed = 0;

  constructor(lead: Lead, size: number) {
    this.#lead = lead;
    const listener = {
      answered: (answer: Answer) => this.#answered(answer),
      failed: (error: Error) => lead.failed(error),
    };
    this.#connections = Array.from({ length: size }, () => new Connection(listener));
  }

  async open(port: number): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.open(port)));
  }

  go(): void {
    const step = this.#lead.nextStep();
    if (step === null) return;
    this.#step = step;
    this.#waiting = this.#connections.length;
    this.#replayed = 0;
    for (const connection of this.#connections) connection.send(step.text);
  }

  close(): void {
    for (const connection of this.#connections) connection.close();
  }

  #answered({ head, ms }: Answer): void {
    const step = this.#step as Step;
    if (!head.startsWith(step.status)) {
      return this.#lead.failed(new Error(`expected ${step.status.trim()}, got:\n${head}`));
    }
    if (head.includes(replayed)) this.#replayed += 1;
    this.#waiting -= 1;
    if (this.#waiting === 0 && this.#replayed !== step.replayed) {
      const size = this.#connections.length;
      return this.#lead.failed(
        new Error(
          `${this.#replayed} replays of ${size} answers, and ${step.replayed} expected; the last:\n${head}`,
        ),
      );
    }
    this.#lead.answered(ms);
    if (this.#waiting === 0) this.go();
  }
}
