/**
 * Group commit: while a slot's statement is in flight the next batch fills, and it leaves as soon as a slot is free, always at
 * the end of the current turn of the event loop: requests that arrived together go together, and a lone one waits for nothing.
 */
export interface BatchOptions<Item> {
  /** Must never reject: each item is told its own result. */
  readonly run: (items: readonly Item[]) => Promise<void>;
  readonly slots: number;
  readonly maxRows: number;
  /** A batch closes before it would pass this; a larger item travels alone. */
  readonly maxBytes: number;
  readonly bytesOf: (item: Item) => number;
}

export class Batcher<Item> {
  readonly #options: BatchOptions<Item>;
  #waiting: Item[] = [];
  #running = 0;
  #scheduled = false;
  #busyMs = 0;
  #busySinceMs = 0;

  constructor(options: BatchOptions<Item>) {
    this.#options = options;
  }

  get depth(): number {
    return this.#waiting.length;
  }

  /** Milliseconds in which statements were under way, ever. By how much it grows an item has waited for the store, not for us. */
  get busyMs(): number {
    return this.#running === 0 ? this.#busyMs : this.#busyMs + performance.now() - this.#busySinceMs;
  }

  push(item: Item): void {
    this.#waiting.push(item);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled || this.#waiting.length === 0 || this.#running >= this.#options.slots) return;
    this.#scheduled = true;
    setImmediate(this.#leave);
  }

  readonly #leave = (): void => {
    this.#scheduled = false;
    while (this.#running < this.#options.slots && this.#waiting.length > 0) {
      if (this.#running === 0) this.#busySinceMs = performance.now();
      this.#running += 1;
      void this.#options.run(this.#take()).then(this.#done);
    }
  };

  readonly #done = (): void => {
    this.#running -= 1;
    if (this.#running === 0) this.#busyMs += performance.now() - this.#busySinceMs;
    this.#schedule();
  };

  #take(): readonly Item[] {
    const { maxRows, maxBytes, bytesOf } = this.#options;
    let rows = 0;
    let bytes = 0;
    for (const item of this.#waiting) {
      bytes += bytesOf(item);
      if (rows === maxRows || (rows > 0 && bytes > maxBytes)) break;
      rows += 1;
    }
    if (rows === this.#waiting.length) {
      const all = this.#waiting;
      this.#waiting = [];
      return all;
    }
    return this.#waiting.splice(0, rows);
  }
}
