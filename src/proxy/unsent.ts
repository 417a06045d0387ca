import type { NeverSent } from '../store/store.ts';

/** One of them. `sinceMs`: when it was given up, by the monotonic clock. */
export interface UnsentAttempt extends NeverSent {
  readonly sinceMs: number;
}

/**
 * About half a kilobyte each. Only what was sent to the store and not answered comes here, a batch at a time, and while the store does
 * not answer one statement finds out for all.
 */
const maxUnsent = 10_000;

/**
 * Attempts of this process of which nothing was sent to the upstream, and nothing ever will be, and whose record the store may hold all the
 * same: the proof by which the sweeper releases it. What does not fit in is not remembered, and so becomes unknown, at its deadline.
 */
export class Unsent {
  readonly #attempts = new Map<string, UnsentAttempt>();

  add(given: NeverSent): void {
    if (this.#attempts.size >= maxUnsent) return;
    this.#attempts.set(given.attempt, { ...given, sinceMs: performance.now() });
  }

  /** Released, or it can hold no record any more. */
  drop(attempt: string): void {
    this.#attempts.delete(attempt);
  }

  get size(): number {
    return this.#attempts.size;
  }

  /** As they are now, oldest first. */
  all(): readonly UnsentAttempt[] {
    return [...this.#attempts.values()];
  }
}
