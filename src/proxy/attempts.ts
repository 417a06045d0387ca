import { randomUUID } from 'node:crypto';
import type { RecordId } from '../core/record.ts';
import { elapsedMs, now } from '../store/moment.ts';
import type { Arriving } from './arriving.ts';
import type { Reply } from './reply.ts';
import { Unsent } from './unsent.ts';

/** One try of ours, from before its reservation is sent until the store has settled it. */
export class Attempt {
  readonly id = randomUUID();
  readonly instance: string;
  /** Milliseconds from its opening after which it must not be sent any more: the sweeper may have called it unknown. */
  readonly deadlineMs: number;
  readonly #opened = now();
  #waiters: Set<(reply: Reply) => void> | null = null;
  #isConcluded = false;
  #answer: Arriving | null = null;
  #isClosed = false;

  constructor(instance: string, deadlineMs: number) {
    this.instance = instance;
    this.deadlineMs = deadlineMs;
  }

  get isOver(): boolean {
    return elapsedMs(this.#opened) >= this.deadlineMs;
  }

  /** The memory of its answer, to be given back when the store has it. */
  keep(answer: Arriving): void {
    this.#answer = answer;
    // Given up on in the meantime.
    if (this.#isClosed) answer.close();
  }

  letGo(): void {
    this.#isClosed = true;
    this.#answer?.close();
  }

  /** true: waiters were answered, and new callers must read the record. It may still be unsaved. */
  get isConcluded(): boolean {
    return this.#isConcluded;
  }

  /** What those who asked for the same key meanwhile are told. Who does not wait any longer calls `leave`. */
  concluded(): { readonly reply: Promise<Reply>; readonly leave: () => void } {
    this.#waiters ??= new Set();
    const waiters = this.#waiters;
    let waiter: (reply: Reply) => void = () => {};
    const reply = new Promise<Reply>((resolve) => {
      waiter = resolve;
    });
    waiters.add(waiter);
    return { reply, leave: () => void waiters.delete(waiter) };
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
 * The attempts of this process, each from before its reservation is sent. That one is not here proves nothing: a failover may bring the
 * record of a settled one back. Only those in `unsent` were never dispatched.
 */
export class Attempts {
  readonly #running = new Map<string, Attempt>();
  readonly unsent = new Unsent();
  readonly #whenIdle: (() => void)[] = [];

  open(instance: string, deadlineMs: number): Attempt {
    const attempt = new Attempt(instance, deadlineMs);
    this.#running.set(attempt.id, attempt);
    return attempt;
  }

  /** Settled, or nobody waits for it any longer. What is then left in progress may have run: a sweeper calls it unknown. */
  close(attempt: Attempt): void {
    attempt.letGo();
    this.#running.delete(attempt.id);
    if (this.#running.size > 0) return;
    for (const resolve of this.#whenIdle.splice(0)) resolve();
  }

  get(id: string): Attempt | undefined {
    return this.#running.get(id);
  }

  /** Given up, and nothing of it was or will be sent: the sweeper releases what record it may have, or may still get. */
  closeUnsent(attempt: Attempt, { scope, key }: RecordId): void {
    this.unsent.add({ scope, key, attempt: attempt.id, instance: attempt.instance });
    this.close(attempt);
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
