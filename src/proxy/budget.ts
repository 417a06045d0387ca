/**
 * Bytes of requests and answers that this process holds in memory. New requests are refused while it is spent; what already
 * runs is never: its answer has to be kept until the store has it.
 */
export class Budget {
  readonly #limitBytes: number;
  #heldBytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** For a new request: false when there is no room for it. */
  tryTake(bytes: number): boolean {
    if (this.#heldBytes + bytes > this.#limitBytes) return false;
    this.#heldBytes += bytes;
    return true;
  }

  /** For what runs already. */
  take(bytes: number): void {
    this.#heldBytes += bytes;
  }

  give(bytes: number): void {
    this.#heldBytes -= bytes;
  }
}
