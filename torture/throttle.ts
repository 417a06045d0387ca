import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Teardown } from '../test/helpers/postgres.ts';

const resolutionMs = 10;
const lookMs = 2_000;
/** Of this process, beyond its own clock: what the sidecars wait for a processor is about the same. */
const starvedMs = 400;
const easyMs = 200;
const least = 3;

/**
 * How many lanes play at once. On a machine that is busy with other things sidecars lose their leases of one second for want
 * of a processor: nothing breaks, but calls are refused that should be ordinary. Then fewer play, and more again later.
 */
export class Throttle {
  readonly #most: number;
  #limit: number;
  #playing = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(t: Teardown, most: number) {
    this.#most = most;
    this.#limit = most;
    const delay = monitorEventLoopDelay({ resolution: resolutionMs });
    delay.enable();
    const timer = setInterval(() => {
      const lateMs = delay.percentile(90) / 1e6 - resolutionMs;
      delay.reset();
      if (lateMs > starvedMs) this.#limit = Math.max(least, Math.floor(this.#limit * 0.7));
      else if (lateMs < easyMs) this.#limit = Math.min(this.#most, this.#limit + 1);
      this.#admit();
    }, lookMs);
    t.teardown(() => {
      clearInterval(timer);
      delay.disable();
    });
  }

  get limit(): number {
    return this.#limit;
  }

  async enter(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve);
      this.#admit();
    });
  }

  leave(): void {
    this.#playing -= 1;
    this.#admit();
  }

  #admit(): void {
    while (this.#playing < this.#limit) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#playing += 1;
      next();
    }
  }
}
