import { randomUUID } from 'node:crypto';
import type { Reply } from './reply.ts';

/** One try of ours, from before its reservation is sent until the store has settled it. */
export class Attempt {
  readonly id = randomUUID();
  readonly instance: string;
  #waiters: ((reply: Reply) => void)[] | null = null;

  constructor(instance: string) {
    this.instance = instance;
  }

  /** What those who asked for the same key meanwhile are told. */
  concluded(): Promise<Reply> {
    return new Promise((resolve) => {
      this.#waiters ??= [];
      this.#waiters.push(resolve);
    });
  }

  conclude(others: Reply): void {
    if (this.#waiters === null) return;
    for (const resolve of this.#waiters) resolve(others);
    this.#waiters = null;
  }
}

/**
 * The attempts of this process. A record of ours that is in progress and not in here was never dispatched: so an
 * attempt enters before its reservation is sent and leaves only when the store has answered its settlement.
 */
export class Attempts {
  readonly #running = new Map<string, Attempt>();
  readonly #whenIdle: (() => void)[] = [];

  open(instance: string): Attempt {
    const attempt = new Attempt(instance);
    this.#running.set(attempt.id, attempt);
    return attempt;
  }

  close(attempt: Attempt): void {
    this.#running.delete(attempt.id);
    if (this.#running.size > 0) return;
    for (const resolve of this.#whenIdle.splice(0)) resolve();
  }

  get(id: string): Attempt | undefined {
    return this.#running.get(id);
  }

  get size(): number {
    return this.#running.size;
  }

  /** At the end of a drain: nobody waits for these any longer. */
  abandon(): void {
    for (const attempt of this.#running.values()) this.close(attempt);
  }

  async idle(): Promise<void> {
    if (this.#running.size === 0) return;
    await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }
}
