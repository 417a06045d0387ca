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

/** Sees a body that comes too slowly. Nothing is done for each piece of it but to count. */
export class Pace {
  readonly #limit: PaceLimit;
  readonly #onSlow: () => void;
  #timer: NodeJS.Timeout | undefined;
  #bytes = 0;

  constructor(onSlow: () => void, limit = defaultLimit) {
    this.#onSlow = onSlow;
    this.#limit = limit;
  }

  /** We wait for the client, from now on. */
  start(): void {
    this.#timer ??= setTimeout(judge, this.#limit.windowMs, this);
  }

  /** We do not: time does not run. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#bytes = 0;
  }

  came(bytes: number): void {
    this.#bytes += bytes;
  }

  judge(): void {
    const isSlow = this.#bytes < this.#limit.leastBytes;
    this.stop();
    if (isSlow) this.#onSlow();
    else this.start();
  }
}

function judge(pace: Pace): void {
  pace.judge();
}
