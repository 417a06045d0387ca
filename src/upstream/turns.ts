/** Milliseconds that a request waits for a connection before one is taken from a client that does not use it. */
const waitMs = 1_000;
/**
 * Milliseconds without progress that make a client slow. Linux may let one that reads 400 kB/s seem to take nothing for as long
 * (proxy/untaken.ts), and one that loads up sends a step in that time (proxy/pace.ts) unless it is slower than 20 kB/s.
 */
const slowMs = 3_000;
/** Milliseconds between checks while requests wait. */
const checkMs = 250;
/** Requests that wait for one upstream, some ten kilobytes each. More would wait for longer than their clients do. */
const usualMaxWaiting = 4_096;

const nowhere = -1;

/** A request that wants, or has, a connection to the upstream. */
export interface Turn {
  /** Where `Turns` keeps it among those that run. */
  place: number;
  /** By `performance.now()`, if it has to wait. */
  queuedAtMs: number;
  /** Since when its client alone keeps it from going on; null: the client does not. */
  readonly slowSinceMs: number | null;
  /** A connection is free for it. */
  start(): void;
  /** Goes on, or ends, without its client. false: it is not its client that holds it up. */
  makeWay(): boolean;
}

/**
 * The requests to one upstream: as many run as there are connections, the others wait in the order in which they came. They wait here
 * and not in undici, which would keep each that has ended meanwhile until its turn came.
 *
 * Slow clients may take their time while there are connections enough. When requests wait, the slow clients lose theirs, the slowest
 * first: else as many of them as there are connections would stop all traffic.
 */
export class Turns<T extends Turn> {
  readonly #connections: number;
  readonly #maxWaiting: number;
  /** Not a Set: the tables that it outgrows keep ended requests alive into the old generation, at a third of the CPU. */
  readonly #running: T[] = [];
  /** Oldest first. */
  readonly #waiting = new Set<T>();
  #isStarting = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(connections: number, maxWaiting = usualMaxWaiting) {
    this.#connections = connections;
    this.#maxWaiting = maxWaiting;
  }

  get size(): number {
    return this.#running.length + this.#waiting.size;
  }

  /** It starts at once, or when a connection is free. false: too many wait. */
  add(turn: T): boolean {
    turn.place = nowhere;
    if (this.#waiting.size === 0 && this.#running.length < this.#connections) {
      this.#start(turn);
      return true;
    }
    if (this.#waiting.size >= this.#maxWaiting) return false;
    turn.queuedAtMs = performance.now();
    this.#waiting.add(turn);
    if (this.#timer === undefined) this.#checkIn(waitMs);
    return true;
  }

  /** May be called for one that is not here any more. */
  remove(turn: T): void {
    if (turn.place === nowhere) return void this.#waiting.delete(turn);
    const last = this.#running.pop() as T;
    if (last !== turn) {
      this.#running[turn.place] = last;
      last.place = turn.place;
    }
    turn.place = nowhere;
    if (this.#waiting.size === 0 || this.#isStarting) return;
    this.#isStarting = true;
    // Later: this one's last callback from undici has not returned yet, and many may end at once.
    queueMicrotask(() => this.#startNext());
  }

  /** Those that wait come first. `visit` may remove the one that it gets, and none that waits starts for that. */
  forEach(visit: (turn: T) => void): void {
    this.#isStarting = true;
    for (const turn of this.#waiting) visit(turn);
    // Backwards: the place of one that is removed is taken by one that was visited already.
    for (let i = this.#running.length - 1; i >= 0; i--) visit(this.#running[i] as T);
    this.#startNext();
  }

  #start(turn: T): void {
    turn.place = this.#running.push(turn) - 1;
    turn.start();
  }

  #startNext(): void {
    for (const turn of this.#waiting) {
      if (this.#running.length >= this.#connections) break;
      this.#waiting.delete(turn);
      this.#start(turn);
    }
    this.#isStarting = false;
  }

  check(): void {
    this.#timer = undefined;
    if (this.#waiting.size === 0) return;
    const nowMs = performance.now();
    let waiting = 0;
    for (const turn of this.#waiting) {
      if (nowMs - turn.queuedAtMs < waitMs) break;
      waiting += 1;
    }
    for (const turn of this.#slowest(nowMs)) {
      if (waiting === 0) break;
      if (turn.makeWay()) waiting -= 1;
    }
    this.#checkIn(checkMs);
  }

  #slowest(nowMs: number): readonly T[] {
    const slow: { readonly turn: T; readonly sinceMs: number }[] = [];
    for (const turn of this.#running) {
      const sinceMs = turn.slowSinceMs;
      if (sinceMs !== null && nowMs - sinceMs >= slowMs) slow.push({ turn, sinceMs });
    }
    return slow.sort((a, b) => a.sinceMs - b.sinceMs).map(({ turn }) => turn);
  }

  #checkIn(ms: number): void {
    this.#timer = setTimeout(check, ms, this);
    // Each request has a timer of its own that keeps the process.
    this.#timer.unref();
  }
}

function check<T extends Turn>(turns: Turns<T>): void {
  turns.check();
}
