import type { StatementError } from './statement-error.ts';

/** Statements in a row that got no answer. One may be a connection that was cut; three are a server in trouble. */
const failuresToOpen = 3;
/** Milliseconds. Errs short: one statement is all that a look costs, and each second of refusal is somebody's 503. */
const firstPauseMs = 250;
const longestPauseMs = 5_000;

/**
 * In front of reservations: while the server does not answer, callers are refused at once instead of after a timeout each.
 * Settlements and the lease do not ask it, for they must be tried in any case.
 */
export class Breaker {
  readonly #nowMs: () => number;
  #failures = 0;
  #pauseMs = firstPauseMs;
  /** null: closed. */
  #openUntilMs: number | null = null;
  #probing = false;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Whether a reservation may join the queue. */
  get admits(): boolean {
    return this.#openUntilMs === null || (!this.#probing && this.#nowMs() >= this.#openUntilMs);
  }

  /** A statement is about to be sent: while open, this one finds out for all. */
  began(): void {
    this.#probing = this.#openUntilMs !== null;
  }

  answered(): void {
    this.#failures = 0;
    this.#pauseMs = firstPauseMs;
    this.#openUntilMs = null;
    this.#probing = false;
  }

  /** A server that says no to a statement has answered: conflicts, lock waits, bad values and bad rows are no trouble of the store. */
  failed(failure: StatementError): void {
    if (failure.isAnswer) {
      this.answered();
      return;
    }
    this.#failures += 1;
    this.#probing = false;
    if (this.#failures < failuresToOpen) return;
    this.#openUntilMs = this.#nowMs() + this.#pauseMs;
    this.#pauseMs = Math.min(this.#pauseMs * 2, longestPauseMs);
  }
}
