import { type Final, persist, repeats } from './call.ts';
import type { Random } from './random.ts';

export interface LoadOptions {
  /** Read at each try: a replica that was restarted has another. */
  readonly urls: readonly string[];
  readonly random: Random;
  readonly workers: number;
  /** Keys begin with it. */
  readonly prefix: string;
  /** Milliseconds after which a client leaves a try and makes the next; never, if it is left out. */
  readonly tryMs?: number;
}

/** Milliseconds after which a client gives its call up: longer than any outage that a drill makes. */
const patienceMs = 25_000;
/** Of calls that repeat a key of a moment ago: duplicates in flight, and replays. */
const repeatedShare = 0.3;
const recentKeys = 40;

/** Clients that call for as long as the load runs, and what they saw. */
export class Load {
  /** The first end that any client saw, by key. */
  readonly finals = new Map<string, Final>();
  /** Two clients of one key saw different answers. */
  readonly disagreements: string[] = [];
  /** Tries by what they came to. */
  readonly tries: Record<string, number> = {};
  calls = 0;
  answered = 0;
  readonly #options: LoadOptions;
  readonly #recent: string[] = [];
  readonly #workers: Promise<void>[];
  #made = 0;
  #isStopping = false;

  constructor(options: LoadOptions) {
    this.#options = options;
    this.#workers = Array.from({ length: options.workers }, () => this.#work());
  }

  /** No new calls; those under way are waited for. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#workers);
  }

  async #work(): Promise<void> {
    const { urls, random, tryMs } = this.#options;
    while (!this.#isStopping) {
      const key = this.nextKey();
      this.calls += 1;
      const final = await persist({
        urls,
        from: random.between(0, urls.length - 1),
        key,
        withinMs: patienceMs,
        ...(tryMs === undefined ? {} : { tryMs }),
        onTry: (seen) => {
          const what = seen.kind === 'answered' ? seen.how : seen.kind === 'refused' ? seen.code : seen.kind;
          this.tries[what] = (this.tries[what] ?? 0) + 1;
        },
      });
      if (final.kind === 'answered') this.answered += 1;
      this.keep(key, final);
    }
  }

  /** A new one, or one of a moment ago. */
  nextKey(): string {
    const { random, prefix } = this.#options;
    if (this.#recent.length > 0 && random.chance(repeatedShare)) return random.pick(this.#recent);
    const key = `${prefix}-${++this.#made}`;
    this.#recent.push(key);
    if (this.#recent.length > recentKeys) this.#recent.shift();
    return key;
  }

  /** An answer is the last word on its key; after it nothing else may be heard. */
  keep(key: string, final: Final): void {
    const before = this.finals.get(key);
    if (before?.kind !== 'answered') {
      this.finals.set(key, final);
      return;
    }
    if (final.kind !== 'gave_up' && !repeats(before, final))
      this.disagreements.push(`${key}: ${before.bytes}, then ${describe(final)}`);
  }

  /** A key of a moment ago whose answer was seen; null: just now there is none. */
  answeredKey(): string | null {
    const answered = this.#recent.filter((key) => this.finals.get(key)?.kind === 'answered');
    return answered.length === 0 ? null : this.#options.random.pick(answered);
  }
}

export function describe(final: Final): string {
  return final.kind === 'answered' ? final.bytes : final.kind;
}
