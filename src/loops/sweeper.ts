import { recordSwept } from '../events.ts';
import type { Lease } from '../store/lease.ts';
import type { NeverSent, Store } from '../store/store.ts';
import type { Counts } from './loop.ts';

export interface SweeperDeps {
  readonly store: Store;
  readonly lease: Lease;
  /** What this process gave up before anything was sent. */
  readonly unsent: {
    all(): readonly (NeverSent & { readonly sinceMs: number })[];
    drop(attempt: string): void;
  };
  /** Monotonic. */
  readonly nowMs: () => number;
}

/** Records in one pass; the rest waits for the next. */
export const sweepLimit = 200;

/** Attempts in one statement: some milliseconds. */
const releaseLimit = 500;

/**
 * Milliseconds in which a reservation that was given up may still arrive at the server. Nothing bounds that for certain: the statement
 * may lie in the buffers of a connection that we have closed, which Linux repeats for about 100 s; in the queue of PgBouncer, 120 s; in a
 * server that is stopped. Its wait for a locked row is bounded (200 ms); its wait for a synchronous standby is not, see `#arrivedBeforeMs`.
 * Errs long: each costs one read by its key in a pass. One that comes later still is nobody's, and becomes unknown.
 */
const arrivalMs = 300_000;

/**
 * Our own records that were never sent are released, and nobody's become `unknown`: what is past its deadline at once, for the database
 * judges that by its own clock; what only its lease speaks against when leases count (`Lease.isSteady`). A pass that fails says nothing
 * about the leases of others: a lock, one bad row and a full pool of ours are no outage.
 */
export class Sweeper {
  readonly #deps: SweeperDeps;

  constructor(deps: SweeperDeps) {
    this.#deps = deps;
  }

  async runOnce(signal: AbortSignal): Promise<Counts> {
    const { store, lease } = this.#deps;
    let failure: Error | null = null;
    const released = await this.releaseUnsent(signal).catch((error: Error) => {
      // It must not keep the rest from being swept.
      failure = error;
      return 0;
    });
    const swept = signal.aborted ? [] : await store.sweep(sweepLimit, () => lease.isSteady);
    for (const record of swept) recordSwept.publish(record);
    if (failure !== null) throw failure;
    return { released, swept: swept.length };
  }

  /**
   * Only those of which this process knows that nothing was sent. A record of ours that is in progress, and that we know nothing of,
   * proves nothing: a failover may have lost what settled it. At a clean stop it is called once more, for nobody else knows.
   */
  async releaseUnsent(signal: AbortSignal): Promise<number> {
    const { store, unsent } = this.#deps;
    const all = unsent.all();
    let released = 0;
    for (let at = 0; at < all.length && !signal.aborted; at += releaseLimit) {
      const some = all.slice(at, at + releaseLimit);
      // Before the store is asked: what it acknowledges meanwhile proves nothing about what it has looked at.
      const beforeMs = this.#arrivedBeforeMs();
      const results = await store.releaseIfNeverSent(some);
      for (const [index, { attempt, sinceMs }] of some.entries()) {
        const result = results[index];
        if (result === 'released') released += 1;
        if (result === 'released' || (result === 'not_held' && sinceMs < beforeMs)) unsent.drop(attempt);
      }
    }
    return released;
  }

  /**
   * What was given up before that and holds no record will never hold one. A commit that waits for its standby is not to be seen, for as
   * long as the standby is away; but commits are acknowledged in their order, so it is over when a later one of ours was.
   */
  #arrivedBeforeMs(): number {
    const { lease, nowMs } = this.#deps;
    return Math.min(lease.renewedMs, nowMs() - arrivalMs);
  }
}
