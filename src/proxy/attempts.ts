import { randomUUID } from 'node:crypto';
import { elapsedMs, now } from '../store/moment.ts';
import type { Budget } from './budget.ts';
import type { Reply } from './reply.ts';

/** One try of ours, from before its reservation is sent until the store has settled it. */
export class Attempt {
  readonly id = randomUUID();
  readonly instance: string;
  /** Milliseconds from its opening after which it must not be sent any more: the sweeper may have called it unknown. */
  readonly deadlineMs: number;
  readonly #opened = now();
  #waiters: ((reply: Reply) => void)[] | null = null;
  #isConcluded = false;
  #budget: Budget | null = null;
  #heldBytes = 0;
  #isClosed = false;

  constructor(instance: string, deadlineMs: number) {
    this.instance = instance;
    this.deadlineMs = deadlineMs;
  }

  get isOver(): boolean {
    return elapsedMs(this.#opened) >= this.deadlineMs;
  }

  /** Its answer stays in memory as it comes, until the store has it, however long that takes. */
  hold(budget: Budget, bytes: number): void {
    // Given up on while its answer still comes: nobody would give this back.
    if (this.#isClosed) return;
    budget.take(bytes);
    this.#budget = budget;
    this.#heldBytes += bytes;
  }

  letGo(): void {
    this.#isClosed = true;
    this.#budget?.give(this.#heldBytes);
    this.#heldBytes = 0;
  }

  /** true: who asks now has to look at the record. It may still be unsaved. */
  get isConcluded(): boolean {
    return this.#isConcluded;
  }

  /** What those who asked for the same key meanwhile are told. */
  concluded(): Promise<Reply> {
    return new Promise((resolve) => {
      this.#waiters ??= [];
      this.#waiters.push(resolve);
    });
  }

  conclude(others: () => Reply): void {
    this.#isConcluded = true;
    if (this.#waiters === null) return;
    const reply = others();
    for (const resolve of this.#waiters) resolve(reply);
    this.#waiters = null;
  }
}

/**
 * The attempts of this process. A record of ours that is in progress and not known here was never dispatched: so an
 * attempt enters before its reservation is sent and leaves only when the store has answered its settlement.
 */
export class Attempts {
  readonly #running = new Map<string, Attempt>();
  readonly #unsettled = new Set<string>();
  readonly #whenIdle: (() => void)[] = [];

  open(instance: string, deadlineMs: number): Attempt {
    const attempt = new Attempt(instance, deadlineMs);
    this.#running.set(attempt.id, attempt);
    return attempt;
  }

  /** Settled, or provably never sent. */
  close(attempt: Attempt): void {
    attempt.letGo();
    this.#running.delete(attempt.id);
    if (this.#running.size > 0) return;
    for (const resolve of this.#whenIdle.splice(0)) resolve();
  }

  get(id: string): Attempt | undefined {
    return this.#running.get(id);
  }

  /** Over here, but the store never took its settlement. It may have run: the sweeper must not release its record. */
  leaveUnsettled(attempt: Attempt): void {
    this.#unsettled.add(attempt.id);
    this.close(attempt);
  }

  isKnown(id: string): boolean {
    return this.#running.has(id) || this.#unsettled.has(id);
  }

  get size(): number {
    return this.#running.size;
  }

  /** At the end of a drain: nobody waits for these any longer. */
  abandon(): void {
    for (const attempt of this.#running.values()) this.leaveUnsettled(attempt);
  }

  async idle(): Promise<void> {
    if (this.#running.size === 0) return;
    await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }
}
