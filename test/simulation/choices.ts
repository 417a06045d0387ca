/**
 * Every choice of a schedule comes from here: first from a given list, then from a seeded generator. Small numbers mean
 * harmless choices, so that a list which is shrunk tells a simpler story.
 */
export class Choices {
  readonly #given: readonly number[];
  #state: number;
  #taken = 0;
  /** From now on nothing goes wrong. */
  isCalm = false;

  constructor(seed: number, given: readonly number[] = []) {
    this.#state = seed >>> 0;
    this.#given = given;
  }

  /** Below 1. Given numbers are bytes. */
  next(): number {
    const given = this.#given[this.#taken];
    if (given !== undefined) {
      this.#taken += 1;
      return given / 256;
    }
    // Mulberry32.
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** Both included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  /** The first is the most harmless one. */
  pick<T>(from: readonly T[]): T {
    return from[this.between(0, from.length - 1)] as T;
  }

  /** Harmless is false. */
  chance(share: number): boolean {
    return this.next() >= 1 - share;
  }

  /** By weight; the first is the most harmless one. */
  weighted<T>(from: readonly (readonly [weight: number, value: T])[]): T {
    let sum = 0;
    for (const [weight] of from) sum += weight;
    let left = this.next() * sum;
    for (const [weight, value] of from) {
      left -= weight;
      if (left < 0) return value;
    }
    return (from.at(-1) as readonly [number, T])[1];
  }
}
