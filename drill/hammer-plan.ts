import { Random } from './random.ts';

/** Duplicates of one key that are sent together. */
export interface Burst {
  readonly key: string;
  /** Where each duplicate goes, by number of the replica. */
  readonly replicas: readonly number[];
  /** Milliseconds from the first to the last of them; 0: all at once. */
  readonly spreadMs: number;
  /** Its key came before: nothing but replays. */
  readonly isAgain: boolean;
  /** Its key never comes again. */
  readonly isLast: boolean;
}

/** Well below `burstMs`, as the timers of a busy process come late. */
const spreadsMs = [0, 0, 1, 3];
const leastSize = 2;
const mostSize = 50;
/** Zipf's exponent, at which a key from `leastSize` to `mostSize` comes 10 times on average. */
const exponent = 1.37;
/** Of the keys that come often enough: half of their requests are kept back. */
const againShare = 0.3;
/** Bursts until then: some seconds. */
const againAfter = 400;

/** All that the load does, from the seed alone. */
export class Plan {
  keys = 0;
  readonly #random: Random;
  readonly #requests: number;
  readonly #replicas: number;
  readonly #shares = cumulativeShares();
  readonly #kept: { readonly key: string; readonly size: number; readonly due: number }[] = [];
  #planned = 0;
  #number = 0;

  constructor(seed: number, requests: number, replicas: number) {
    this.#random = new Random(seed);
    this.#requests = requests;
    this.#replicas = replicas;
  }

  /** null: that was all. */
  next(): Burst | null {
    const isEnd = this.#planned >= this.#requests;
    const kept = this.#kept[0];
    this.#number += 1;
    if (kept !== undefined && (isEnd || kept.due <= this.#number)) {
      this.#kept.shift();
      return this.#burst(kept.key, kept.size, { isAgain: true, isLast: true });
    }
    if (isEnd) return null;
    const size = Math.min(this.#size(), Math.max(leastSize, this.#requests - this.#planned));
    this.#planned += size;
    const key = `hammer-${++this.keys}`;
    const later = size >= 2 * leastSize && this.#random.chance(againShare) ? Math.floor(size / 2) : 0;
    if (later > 0) this.#kept.push({ key, size: later, due: this.#number + againAfter });
    return this.#burst(key, size - later, { isAgain: false, isLast: later === 0 });
  }

  #burst(key: string, size: number, which: Pick<Burst, 'isAgain' | 'isLast'>): Burst {
    const replicas = Array.from({ length: size }, () => this.#random.between(0, this.#replicas - 1));
    return { key, replicas, spreadMs: this.#random.pick(spreadsMs), ...which };
  }

  #size(): number {
    const drawn = this.#random.next();
    return leastSize + this.#shares.findIndex((share) => drawn < share);
  }
}

/** Of the sizes from `leastSize` on. */
function cumulativeShares(): number[] {
  const weights = Array.from({ length: mostSize - leastSize + 1 }, (_, i) => (leastSize + i) ** -exponent);
  const whole = weights.reduce((sum, weight) => sum + weight, 0);
  let sum = 0;
  // The last one above any draw, whatever the rounding.
  return weights.map((weight, i) => (i === weights.length - 1 ? 1 : (sum += weight / whole)));
}
