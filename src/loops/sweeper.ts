import { recordSwept } from '../events.ts';
import type { Lease } from '../store/lease.ts';
import type { Held, Store } from '../store/store.ts';
import type { Counts } from './loop.ts';

export interface SweeperDeps {
  readonly store: Store;
  readonly lease: Lease;
  /** The attempts that this process works on, or cannot rule out to have sent. */
  readonly attempts: { readonly size: number; isKnown(attempt: string): boolean };
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

  /**
   * Reserved for us by a statement whose answer we never saw: nobody forwarded them, so they may run again. Also under the ids
   * that we had before an outage, while every sweeper is still quiet: soon it would be nobody's and become unknown.
   */
  async #releaseOrphans(): Promise<number> {
    const { store, lease } = this.#deps;
    let released = 0;
    for (const instance of lease.all) {
      const orphans = await this.#findOrphans(instance);
      if (orphans.length > 0) released += await store.releaseIfNeverSent(instance, orphans);
    }
    return released;
  }

  /**
   * Listed twice. An attempt may be settled, as unknown for instance, and leave the table after the first list was read
   * and before we look: it would seem never sent, and be released. What is not known now and in progress still was not.
   */
  async #findOrphans(instance: string): Promise<readonly Held[]> {
    const { store, attempts } = this.#deps;
    // Our running ones must not crowd out the others.
    const list = () => store.listInProgress(instance, attempts.size + sweepLimit);
    const suspects = (await list()).filter(({ attempt }) => !attempts.isKnown(attempt));
    if (suspects.length === 0) return [];
    const still = new Set((await list()).map(({ attempt }) => attempt));
    return suspects.filter(({ attempt }) => still.has(attempt));
  }
}
