/** Node's longest timer; above it setTimeout fires at once. */
const maxTimerMs = 2 ** 31 - 1;

/**
 * Of a call's time, at most, until it is sent. One that is sent with little of it left ends as unknown, however quick the upstream is;
 * one that is not sent is free to be tried again.
 */
const unsentPart = 1 / 2;

/**
 * Milliseconds that an answer may be held up by us in all. Longer than any sink holds one (proxy/capture.ts): whatever goes wrong
 * there, the call ends and its connection is free.
 */
const usualMaxHeldMs = 360_000;

/** The upstream's time for one call. It stands still while we hold the upstream up, for that is not its fault. */
export class CallClock {
  readonly #onOver: () => void;
  #leftMs: number;
  #heldLeftMs: number;
  #isSent = false;
  #isHeld = false;
  #sinceMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(limitMs: number, onOver: () => void, maxHeldMs = usualMaxHeldMs) {
    this.#heldLeftMs = maxHeldMs;
    this.#leftMs = limitMs;
    this.#onOver = onOver;
  }

  start(): void {
    this.#sinceMs = performance.now();
    this.#timer = setTimeout(judge, Math.min(this.#leftMs * unsentPart, maxTimerMs), this);
  }

  /** It has all the time that is left. */
  sent(): void {
    this.#isSent = true;
  }

  judge(): void {
    if (!this.#isSent) return this.#onOver();
    this.#leftMs -= performance.now() - this.#sinceMs;
    this.#run(this.#leftMs);
  }

  get heldSinceMs(): number | null {
    return this.#isHeld ? this.#sinceMs : null;
  }

  hold(): void {
    if (this.#isHeld) return;
    this.#leftMs -= performance.now() - this.#sinceMs;
    this.#isHeld = true;
    this.#run(this.#heldLeftMs);
  }

  letGo(): void {
    if (!this.#isHeld) return;
    this.#heldLeftMs -= performance.now() - this.#sinceMs;
    this.#isHeld = false;
    this.#run(this.#leftMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #run(ms: number): void {
    clearTimeout(this.#timer);
    this.#sinceMs = performance.now();
    this.#timer = setTimeout(this.#onOver, Math.min(ms, maxTimerMs));
  }
}

function judge(clock: CallClock): void {
  clock.judge();
}
