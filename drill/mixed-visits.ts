import { setTimeout as delay } from 'node:timers/promises';
import { ask, problemOf } from '../test/helpers/client.ts';
import { isProblem, tryOnce } from './call.ts';
import type { Load } from './load.ts';
import type { Random } from './random.ts';

const workers = 6;
/** Milliseconds between two visits of one worker, so that most calls are those of the load. */
const mostPauseMs = 60;
/** Milliseconds after which a client leaves: mostly while its request runs. */
const mostStayMs = 40;
/** Milliseconds that any other visitor waits for its answer. */
const patienceMs = 2_000;

/** All that is no plain call: requests that pass through, keys used for something else, clients that leave. */
export class Visits {
  /** By what they came to. */
  readonly passed: Record<string, number> = {};
  readonly reused: Record<string, number> = {};
  readonly left: Record<string, number> = {};
  /** What a client with another body got to see, and must not. */
  readonly leaks: string[] = [];
  readonly #load: Load;
  readonly #urls: readonly string[];
  readonly #random: Random;
  readonly #workers: Promise<void>[];
  #isStopping = false;

  constructor(load: Load, urls: readonly string[], random: Random) {
    this.#load = load;
    this.#urls = urls;
    this.#random = random;
    this.#workers = Array.from({ length: workers }, () => this.#work());
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#workers);
  }

  async #work(): Promise<void> {
    while (!this.#isStopping) {
      const url = this.#random.pick(this.#urls);
      const visit = this.#random.pick(['pass', 'reuse', 'leave'] as const);
      if (visit === 'pass') count(this.passed, await pass(url));
      if (visit === 'reuse') await this.#reuse(url);
      if (visit === 'leave') await this.#leave(url);
      await delay(this.#random.between(0, mostPauseMs));
    }
  }

  /** Only of a key that has a record for certain: else this request would be its first. */
  async #reuse(url: string): Promise<void> {
    const key = this.#load.answeredKey();
    if (key === null) return;
    try {
      const signal = AbortSignal.timeout(patienceMs);
      const answer = await ask(`${url}/charges`, { key, body: '{"for":"something else"}', signal });
      const text = `${JSON.stringify(answer.headers)} ${answer.body.toString()}`;
      if (!isProblem(answer) || text.includes('start') || text.includes(key))
        this.leaks.push(`${key}: ${answer.status} ${text.slice(0, 300)}`);
      count(this.reused, isProblem(answer) ? problemOf(answer).code : String(answer.status));
    } catch (error) {
      count(this.reused, codeOf(error));
    }
  }

  async #leave(url: string): Promise<void> {
    const key = this.#load.nextKey();
    const seen = await tryOnce(url, key, AbortSignal.timeout(this.#random.between(1, mostStayMs)));
    count(this.left, seen.kind === 'refused' ? seen.code : seen.kind);
    // Somebody has to ask for it in the end.
    this.#load.keep(key, seen.kind === 'refused' ? { kind: 'gave_up' } : seen);
  }
}

async function pass(url: string): Promise<string> {
  try {
    const signal = AbortSignal.timeout(patienceMs);
    return String((await ask(`${url}/things`, { method: 'GET', signal })).status);
  } catch (error) {
    return codeOf(error);
  }
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? 'cut';

function count(counts: Record<string, number>, word: string): void {
  counts[word] = (counts[word] ?? 0) + 1;
}
