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
  /** Whose it is: that of one waits behind its own, not behind those of others. */
  readonly address: string;
  /** Since when its client alone keeps it from going on; null: the client does not. */
  readonly slowSinceMs: number | null;
  /** A connection is free for it. */
  start(): void;
  /** There is no room for it to wait any longer: somebody who has fewer of them needs it. */
  refuse(): void;
  /** Goes on, or ends, without its client. false: it is not its client that holds it up. */
  makeWay(): boolean;
}

/**
 * The requests to one upstream: as many run as there are connections. The others wait, the clients' addresses take turns, and those of
 * one address go in the order in which they came: however many it sends, nobody else waits behind them. They wait here and not in
 * undici, which would keep each that has ended meanwhile until its turn came.
 *
 * Slow clients may take their time while there are connections enough. When requests wait, the slow clients lose theirs, the slowest
 * first: else as many of them as there are connections would stop all traffic.
 */
export class Turns<T extends Turn> {
  readonly #connections: number;
  readonly #maxWaiting: number;
  /** Not a Set: the tables that it outgrows keep ended requests alive into the old generation, at a third of the CPU. */
  readonly #running: T[] = [];
  /** By address: whose turn is next comes first, and of each the oldest. */
  readonly #waiting = new Map<string, Set<T>>();
  #waitingCount = 0;
  #isStarting = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(connections: number, maxWaiting = usualMaxWaiting) {
    this.#connections = connections;
    this.#maxWaiting = maxWaiting;
  }

  get size(): number {
    return this.#running.length + this.#waitingCount;
  }

  /** It starts at once, or when a connection is free. false: too many wait. */
  add(turn: T): boolean {
    turn.place = nowhere;
    if (this.#waitingCount === 0 && this.#running.length < this.#connections) {
      this.#start(turn);
      return true;
    }
    const others = this.#waiting.get(turn.address) ?? new Set();
    if (this.#waitingCount >= this.#maxWaiting && !this.#makeRoom(others.size)) return false;
    turn.queuedAtMs = performance.now();
    this.#waiting.set(turn.address, others.add(turn));
    this.#waitingCount += 1;
    if (this.#timer === undefined) this.#checkIn(waitMs);
    return true;
  }

  /** May be called for one that is not here any more. */
  remove(turn: T): void {
    if (turn.place === nowhere) return this.#forget(turn);
    const last = this.#running.pop() as T;
    if (last !== turn) {
      this.#running[turn.place] = last;
      last.place = turn.place;
    }
    turn.place = nowhere;
    if (this.#waitingCount === 0 || this.#isStarting) return;
    this.#isStarting = true;
    // Later: this one's last callback from undici has not returned yet, and many may end at once.
    queueMicrotask(() => this.#startNext());
  }

  /** Those that wait come first. `visit` may remove the one that it gets, and none that waits starts for that. */
  forEach(visit: (turn: T) => void): void {
    this.#isStarting = true;
    for (const turns of this.#waiting.values()) for (const turn of turns) visit(turn);
    // Backwards: the place of one that is removed is taken by one that was visited already.
    for (let i = this.#running.length - 1; i >= 0; i--) visit(this.#running[i] as T);
    this.#startNext();
  }

  #start(turn: T): void {
    turn.place = this.#running.push(turn) - 1;
    turn.start();
  }

  #startNext(): void {
    while (this.#running.length < this.#connections) {
      const [next] = this.#waiting;
      if (next === undefined) break;
      const [address, turns] = next;
      const [oldest] = turns as Set<T> & [T];
      this.#forget(oldest);
      // Behind all others, where it has more.
      if (this.#waiting.delete(address)) this.#waiting.set(address, turns);
      this.#start(oldest);
    }
    this.#isStarting = false;
  }

  #forget(turn: T): void {
    const turns = this.#waiting.get(turn.address);
    if (turns === undefined || !turns.delete(turn)) return;
    this.#waitingCount -= 1;
    if (turns.size === 0) this.#waiting.delete(turn.address);
  }

  /** The newest of the address that has the most goes, for one of an address that has so many. */
  #makeRoom(count: number): boolean {
    let most: Set<T> = new Set();
    for (const turns of this.#waiting.values()) if (turns.size > most.size) most = turns;
    if (most.size <= count + 1) return false;
    const newest = [...most].pop() as T;
    this.#forget(newest);
    newest.refuse();
    return true;
  }

  check(): void {
    this.#timer = undefined;
    if (this.#waitingCount === 0) return;
    const nowMs = performance.now();
    let waiting = 0;
    for (const turns of this.#waiting.values()) {
      for (const turn of turns) {
        if (nowMs - turn.queuedAtMs < waitMs) break;
        waiting += 1;
      }
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
