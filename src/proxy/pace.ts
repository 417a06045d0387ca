export interface PaceLimit {
  /** Milliseconds. */
  readonly windowMs: number;
  /** Bytes that come in each window, at least. */
  readonly leastBytes: number;
}

/**
 * 1 kB a second, over windows in which a train goes through a tunnel. A slower body costs its client nothing and us memory, or
 * an upstream's connection, for as long as it likes.
 */
const defaultLimit: PaceLimit = { windowMs: 10_000, leastBytes: 10_000 };

/** Bytes. Whoever sends so many within a few seconds is not slow, even where others wait for its connection (upstream/turns.ts). */
const stepBytes = 65_536;

/** Sees a body that comes too slowly. Nothing is done for each piece of it but to count. */
export class Pace {
  readonly #limit: PaceLimit;
  readonly #onSlow: () => void;
  #timer: NodeJS.Timeout | undefined;
  #bytes = 0;
  #stepBytes = 0;
  #stepAtMs = 0;

  constructor(onSlow: () => void, limit = defaultLimit) {
    this.#onSlow = onSlow;
    this.#limit = limit;
  }

  /** We wait for the client, from now on. */
  start(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(judge, this.#limit.windowMs, this);
    this.#step();
  }

  /** Since when less than a step has come, by `performance.now()`; null: we do not wait for the client. */
  get slowSinceMs(): number | null {
    return this.#timer === undefined ? null : this.#stepAtMs;
  }

  /** We do not: time does not run. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#bytes = 0;
  }

  came(bytes: number): void {
    this.#bytes += bytes;
    this.#stepBytes += bytes;
    if (this.#stepBytes >= stepBytes) this.#step();
  }

  judge(): void {
    if (this.#bytes < this.#limit.leastBytes) {
      this.stop();
      this.#onSlow();
      return;
    }
    this.#bytes = 0;
    this.#timer = setTimeout(judge, this.#limit.windowMs, this);
  }

  #step(): void {
    this.#stepBytes = 0;
    this.#stepAtMs = performance.now();
  }
}

function judge(pace: Pace): void {
  pace.judge();
}
