import type { Counter, Histogram } from 'prom-client';

/** Flushed every so many samples, and before each scrape. */
const size = 512;

/**
 * Durations on their way to a histogram. Told one by one they cost each request some µs, since by then the processor has forgotten
 * prom-client's code; many in a row cost a fraction of that.
 */
export class GatheredDurations {
  readonly #to: Histogram;
  readonly #ms = new Float64Array(size);
  #count = 0;

  constructor(to: Histogram) {
    this.#to = to;
  }

  /** null: that part did not happen. */
  add(ms: number | null): void {
    if (ms === null) return;
    this.#ms[this.#count++] = ms;
    if (this.#count === size) this.tell();
  }

  tell(): void {
    for (let i = 0; i < this.#count; i += 1) this.#to.observe((this.#ms[i] as number) / 1000);
    this.#count = 0;
  }
}

type RequestLabels = Record<'route' | 'verdict' | 'outcome', string>;

/** The same for a counter. */
export class GatheredRequests {
  readonly #to: Counter<keyof RequestLabels>;
  readonly #counts = new Map<string, { readonly labels: RequestLabels; count: number }>();

  constructor(to: Counter<keyof RequestLabels>) {
    this.#to = to;
  }

  add(route: string, verdict: string, outcome: string): void {
    // All three are words of ours or patterns of the config: there are few.
    const name = `${verdict} ${outcome} ${route}`;
    const gathered = this.#counts.get(name);
    if (gathered === undefined) this.#counts.set(name, { labels: { route, verdict, outcome }, count: 1 });
    else gathered.count += 1;
  }

  tell(): void {
    for (const gathered of this.#counts.values()) {
      if (gathered.count > 0) this.#to.inc(gathered.labels, gathered.count);
      gathered.count = 0;
    }
  }
}
