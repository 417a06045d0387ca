import { randomUUID } from 'node:crypto';
import { OncegateError } from '../errors.ts';
import type { Store } from './store.ts';

/**
 * This instance's lease. The local deadline counts from before the renewal was sent, so it always ends before the
 * server's. Both clocks are read: monotonic time stands still while a machine is suspended, wall time does not; the
 * one that ran further counts, so a step of the wall clock can only end the lease early.
 */
export interface Clock {
  readonly monotonicMs: () => number;
  readonly wallMs: () => number;
}

const systemClock: Clock = { monotonicMs: () => performance.now(), wallMs: () => Date.now() };

/** Share of the lease kept back: nothing starts in it, so that what starts has left before the lease is over. */
const reserveShare = 0.1;
/** Ids of this process that are remembered; each is a store outage longer than a lease ago. */
const maxFormer = 8;

export class Lease {
  readonly #store: Store;
  readonly #leaseMs: number;
  readonly #clock: Clock;
  #instance: string | null = null;
  #monotonicMs = 0;
  #wallMs = 0;
  #closed = false;
  readonly #former: string[] = [];

  constructor(store: Store, leaseMs: number, clock: Clock = systemClock) {
    this.#store = store;
    this.#leaseMs = leaseMs;
    this.#clock = clock;
  }

  /** The id under which work may be taken now; null: none, the lease is over and a new one is not there yet. */
  current(): string | null {
    return this.#instance !== null && this.#elapsedMs() < this.#leaseMs * (1 - reserveShare)
      ? this.#instance
      : null;
  }

  /** The last check before bytes leave: the attempt's own lease must be live, not just any. */
  mayStart(instance: string): boolean {
    return this.current() === instance;
  }

  /** Every id that this process had, newest first: under none of them does anybody else work. */
  get all(): readonly string[] {
    return this.#instance === null ? this.#former : [this.#instance, ...this.#former];
  }

  /** Renews, or takes a new id when the old one lapsed. Attempts of the old id may complete, never start. */
  async renew(): Promise<'renewed' | 'opened'> {
    const monotonicMs = this.#clock.monotonicMs();
    const wallMs = this.#clock.wallMs();
    const instance = this.#instance;
    if (instance !== null && this.current() !== null) {
      const alive = await this.#store.renewLease(instance, this.#leaseMs);
      // An answer after our own deadline counts for nothing: we already told attempts not to start.
      if (alive && this.current() !== null) {
        this.#monotonicMs = monotonicMs;
        this.#wallMs = wallMs;
        return 'renewed';
      }
    }
    await this.#open();
    return 'opened';
  }

  /** At a clean stop: nothing of ours may start any more, also when a renewal is still under way. */
  async close(): Promise<void> {
    this.#closed = true;
    const instance = this.#instance;
    this.#instance = null;
    if (instance !== null) await this.#store.closeLease(instance);
  }

  async #open(): Promise<void> {
    if (this.#instance !== null) this.#former.unshift(this.#instance);
    this.#former.splice(maxFormer);
    this.#instance = null;
    if (this.#closed) throw new OncegateError('store_unavailable', 'the lease was closed');
    const monotonicMs = this.#clock.monotonicMs();
    const wallMs = this.#clock.wallMs();
    const instance = randomUUID();
    await this.#store.openLease(instance, this.#leaseMs);
    if (this.#closed) return;
    this.#monotonicMs = monotonicMs;
    this.#wallMs = wallMs;
    this.#instance = instance;
  }

  #elapsedMs(): number {
    const monotonic = this.#clock.monotonicMs() - this.#monotonicMs;
    const wall = this.#clock.wallMs() - this.#wallMs;
    return Math.max(monotonic, wall);
  }
}
