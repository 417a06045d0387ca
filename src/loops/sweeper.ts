import { recordSwept } from '../events.ts';
import type { Lease } from '../store/lease.ts';
import type { Store } from '../store/store.ts';
import type { Counts } from './loop.ts';

export interface SweeperDeps {
  readonly store: Store;
  readonly lease: Lease;
  /** Whether this process still works on an attempt. */
  readonly isKnown: (attempt: string) => boolean;
  readonly leaseMs: number;
  readonly nowMs: () => number;
}

/** Records in one pass; the rest waits for the next. */
export const sweepLimit = 200;

/**
 * Nobody's records become `unknown`, and our own that were never sent are released. It waits one full lease after its
 * start and after each time the store was out: until then others may just not have been able to renew.
 */
export class Sweeper {
  readonly #deps: SweeperDeps;
  #quietUntilMs: number;

  constructor(deps: SweeperDeps) {
    this.#deps = deps;
    this.#quietUntilMs = deps.nowMs() + deps.leaseMs;
  }

  async runOnce(signal: AbortSignal): Promise<Counts> {
    try {
      const released = await this.#releaseOrphans();
      if (signal.aborted || this.#deps.nowMs() < this.#quietUntilMs) return { released, swept: 0 };
      const swept = await this.#deps.store.sweep(sweepLimit);
      for (const record of swept) recordSwept.publish(record);
      return { released, swept: swept.length };
    } catch (error) {
      this.#quietUntilMs = this.#deps.nowMs() + this.#deps.leaseMs;
      throw error;
    }
  }

  /** Reserved for us by a statement whose answer we never saw: nobody forwarded them, so they may run again. */
  async #releaseOrphans(): Promise<number> {
    const { store, lease, isKnown } = this.#deps;
    const instance = lease.current();
    if (instance === null) return 0;
    const held = await store.listInProgress(instance, sweepLimit);
    const orphans = held.filter((one) => !isKnown(one.attempt));
    const releases = orphans.map(({ scope, key, attempt }) => {
      const error = 'reserved but never forwarded';
      return store.releaseIfHeld({
        scope,
        key,
        attempt,
        status: null,
        error,
        retentionMs: orphanRetentionMs,
      });
    });
    await Promise.all(releases);
    return orphans.length;
  }
}

/** A day, like the default retention: a client that was told 503 has long retried by then. */
const orphanRetentionMs = 86_400_000;
