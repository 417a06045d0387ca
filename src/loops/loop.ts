import { asError } from '../errors.ts';
import { loopDone } from '../events.ts';

export type Counts = Readonly<Record<string, number>>;

export interface LoopOptions {
  readonly name: string;
  readonly everyMs: number;
  /** One pass. The signal says that the process stops: end early between two statements. */
  readonly runOnce: (signal: AbortSignal) => Promise<Counts>;
  /** Milliseconds after a failed pass; grows a little with each failure. */
  readonly retryMs: number;
  /** true: there is more than one pass could do, so the next one follows at once. */
  readonly hasMore?: (counts: Counts) => boolean;
  /** Milliseconds before the first pass; replicas that start together are spread. */
  readonly firstMs?: number;
}

/** How far the pause after a failed pass grows, in multiples of `retryMs`: a store that is back must be noticed soon. */
const longestPause = 4;

/** The clockwork: it alone knows time. A pass knows only what to do. */
export class Loop {
  readonly #options: LoopOptions;
  readonly #stopping = new AbortController();
  #timer: NodeJS.Timeout | null = null;
  #pass: Promise<void> | null = null;
  #failures = 0;

  constructor(options: LoopOptions) {
    this.#options = options;
  }

  start(): this {
    this.#schedule(this.#options.firstMs ?? this.#options.everyMs * Math.random());
    return this;
  }

  /** Waits for the pass under way. May be called twice. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#pass;
  }

  #schedule(afterMs: number): void {
    if (this.#stopping.signal.aborted) return;
    this.#timer = setTimeout(() => {
      this.#pass = this.#run();
    }, afterMs);
  }

  async #run(): Promise<void> {
    const { name, everyMs, runOnce, hasMore } = this.#options;
    const startedMs = performance.now();
    try {
      const counts = await runOnce(this.#stopping.signal);
      this.#failures = 0;
      loopDone.publish({ loop: name, counts, ms: performance.now() - startedMs, error: null });
      this.#schedule(hasMore?.(counts) ? 0 : everyMs);
    } catch (error) {
      this.#failures += 1;
      loopDone.publish({ loop: name, counts: {}, ms: performance.now() - startedMs, error: asError(error) });
      this.#schedule(this.#options.retryMs * Math.min(this.#failures, longestPause));
    }
  }
}
