/** Milliseconds that a request waits for a connection before one is taken from a client that does not use it. */
const waitMs = 1_000;
/**
 * Milliseconds without progress that make a client slow. Linux may let one that reads 400 kB/s seem to take nothing for as long
 * (proxy/untaken.ts), and one that loads up sends a step in that time (proxy/pace.ts) unless it is slower than 20 kB/s.
 */
const slowMs = 3_000;
/** Milliseconds between checks while more requests are under way than there are connections. */
const checkMs = 250;

/** A request that wants, or has, a connection to the upstream. */
export interface Turn {
  /** Where `Turns` keeps it; -1: nowhere. */
  place: number;
  /** By `performance.now()`. */
  readonly queuedAtMs: number;
  readonly hasConnection: boolean;
  /** Since when its client alone keeps it from going on; null: the client does not. */
  readonly slowSinceMs: number | null;
  /** Goes on, or ends, without its client. false: it is not its client that holds it up. */
  makeWay(): boolean;
}

/**
 * The requests to one upstream. Slow clients may take their time while there are connections enough. When all are taken and others
 * wait, the slow clients lose theirs, the slowest first: else as many of them as there are connections would stop all traffic.
 */
export class Turns<T extends Turn> {
  readonly #connections: number;
  /** Not a Set: the tables that it outgrows keep ended requests alive into the old generation, at a third of the CPU. */
  readonly #all: T[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(connections: number) {
    this.#connections = connections;
  }

  get size(): number {
    return this.#all.length;
  }

  add(turn: T): void {
    turn.place = this.#all.push(turn) - 1;
    if (this.#all.length > this.#connections && this.#timer === undefined) this.#checkIn(waitMs);
  }

  /** May be called for one that is not here any more. */
  remove(turn: T): void {
    if (turn.place === -1) return;
    const last = this.#all.pop() as T;
    if (last !== turn) {
      this.#all[turn.place] = last;
      last.place = turn.place;
    }
    turn.place = -1;
  }

  /** `visit` may remove the one that it gets. */
  forEach(visit: (turn: T) => void): void {
    // Backwards: the place of one that is removed is taken by one that was visited already.
    for (let i = this.#all.length - 1; i >= 0; i--) visit(this.#all[i] as T);
  }

  check(): void {
    this.#timer = undefined;
    if (this.#all.length <= this.#connections) return;
    const nowMs = performance.now();
    let waiting = 0;
    const slow: { readonly turn: T; readonly sinceMs: number }[] = [];
    for (const turn of this.#all) {
      const sinceMs = turn.hasConnection ? turn.slowSinceMs : null;
      if (sinceMs !== null && nowMs - sinceMs >= slowMs) slow.push({ turn, sinceMs });
      if (!turn.hasConnection && nowMs - turn.queuedAtMs >= waitMs) waiting += 1;
    }
    slow.sort((a, b) => a.sinceMs - b.sinceMs);
    for (const { turn } of slow) {
      if (waiting === 0) break;
      if (turn.makeWay()) waiting -= 1;
    }
    this.#checkIn(checkMs);
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
