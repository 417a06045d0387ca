import type { Budget } from './budget.ts';

/** What an attempt keeps of its answer, from the first byte until the store has settled it, however long that takes. */
export class Arriving {
  readonly #budget: Budget;
  readonly goOn: () => void;
  #heldBytes = 0;
  #isClosed = false;

  /** `goOn`: what was stopped for want of memory may be read on. */
  constructor(budget: Budget, goOn: () => void) {
    this.#budget = budget;
    this.goOn = goOn;
  }

  /** false: read no more until `goOn`. */
  add(bytes: number): boolean {
    // Given up on while its answer still comes: nobody would give this back.
    if (this.#isClosed) return true;
    this.#heldBytes += bytes;
    return this.#budget.arrive(this, bytes);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#budget.arrived(this, this.#heldBytes);
  }
}
