import { bytesOf, type Told, wordOf } from './callers.ts';
import type { Burst } from './hammer-plan.ts';

/** What the load has seen so far. */
export interface Hammered {
  readonly isDone: boolean;
  /** Why it could not go on; null: it could. */
  readonly error: string | null;
  readonly seconds: number;
  readonly keys: number;
  readonly calls: number;
  readonly bursts: number;
  /** Bursts of a key that had come before. */
  readonly again: number;
  /** First bursts of a key with two duplicates or more in flight at once. */
  readonly raced: number;
  /** Bursts whose duplicates were all sent within the time that they were to be. */
  readonly within: number;
  /** Calls by how they ended: `executed`, `replayed`, or what else was the last word. */
  readonly ends: Readonly<Record<string, number>>;
  /** Tries that were told to come again, by code. */
  readonly refusals: Readonly<Record<string, number>>;
  readonly unlike: readonly string[];
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Of one burst, while it lasts. */
export interface Passage {
  readonly burst: Burst;
  readonly firstMs: number;
  left: number;
  inFlight: number;
  mostInFlight: number;
  lastMs: number;
}

/** Milliseconds from the first to the last duplicate of a burst. */
export const burstMs = 5;
/** Named in the findings; all are counted. */
const mostUnlike = 1_000;

export class Tally {
  calls = 0;
  unanswered = 0;
  readonly ends: Record<string, number> = {};
  readonly refusals: Record<string, number> = {};
  readonly #unlike: string[] = [];
  readonly #first = new Map<string, string>();
  readonly #latencies: Float64Array;
  #bursts = 0;
  #again = 0;
  #raced = 0;
  #within = 0;

  constructor(requests: number) {
    // A last key may come twice where once was wanted.
    this.#latencies = new Float64Array(requests + 2);
  }

  refused(told: Told): void {
    count(this.refusals, wordOf(told));
  }

  ended({ key }: Burst, told: Told, ms: number): void {
    const word = wordOf(told);
    count(this.ends, word);
    this.#latencies[this.calls] = ms;
    this.calls += 1;
    if (told.status !== 201) {
      this.unanswered += 1;
      return;
    }
    const bytes = bytesOf(told);
    const first = this.#first.get(key);
    if (first === undefined) this.#first.set(key, bytes);
    const isOfKey = told.body.endsWith(`"key":"${key}"}`);
    if (isOfKey && (first ?? bytes) === bytes) return;
    if (this.#unlike.length < mostUnlike) this.#unlike.push(`${key}: ${first ?? 'at first'}, then ${bytes}`);
  }

  over({ burst, mostInFlight, firstMs, lastMs }: Passage): void {
    this.#bursts += 1;
    if (burst.isAgain) this.#again += 1;
    else if (mostInFlight > 1) this.#raced += 1;
    if (lastMs - firstMs <= burstMs) this.#within += 1;
    if (burst.isLast) this.#first.delete(burst.key);
  }

  result(about: Pick<Hammered, 'isDone' | 'error' | 'seconds' | 'keys'>): Hammered {
    const sorted = about.isDone ? this.#latencies.slice(0, this.calls).sort() : new Float64Array();
    const at = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))] ?? 0;
    return {
      ...about,
      calls: this.calls,
      bursts: this.#bursts,
      again: this.#again,
      raced: this.#raced,
      within: this.#within,
      ends: this.ends,
      refusals: this.refusals,
      unlike: this.#unlike,
      p50Ms: at(0.5),
      p99Ms: at(0.99),
    };
  }
}

function count(counts: Record<string, number>, word: string): void {
  counts[word] = (counts[word] ?? 0) + 1;
}
