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
/**
 * Share of the lease: renewals of ours further apart mean an outage in which a live peer may have lost its lease. All renew a third of it
 * apart, so a peer has at least two thirds left when the store goes away. After an outage shorter than this a quarter is left to renew
 * in, 16 s of the usual minute: enough for a statement that hangs (5 s) and the longest pause (4 s), and nearly so for half a minute.
 * Larger would sweep live peers; as small as a third, one renewal that fails and is repeated at once would count as an outage.
 */
const gapShare = 0.4;
/** Milliseconds that a renewal may come late at least, where the lease is so short that a busy machine would look like an outage. */
const leastLatenessMs = 300;

export class Lease {
  readonly #store: Store;
  readonly #leaseMs: number;
  readonly #clock: Clock;
  #instance: string | null = null;
  #monotonicMs = 0;
  #wallMs = 0;
  #closed = false;
  #renewedMs = Number.NEGATIVE_INFINITY;
  /** By the monotonic clock: when the last outage was seen to be over. */
  #steadySinceMs = Number.POSITIVE_INFINITY;

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

  /** By the monotonic clock: just before the last write of ours was sent that the store has acknowledged. */
  get renewedMs(): number {
    return this.#renewedMs;
  }

  /**
   * Whether the lease of another that is over tells that it is gone. For one lease after our start, and after each outage in which others
   * could not renew either, it may live. Derived from our own renewals, for those of others go the same way to the same server. By the
   * monotonic clock, which stands still while the machine sleeps: a step of the wall clock cannot cut that time short.
   */
  get isSteady(): boolean {
    return (
      this.#instance !== null &&
      this.#elapsedMs() <= this.#gapMs &&
      this.#clock.monotonicMs() - this.#steadySinceMs >= this.#leaseMs
    );
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
        this.#acknowledged(monotonicMs, wallMs);
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
    this.#instance = null;
    if (this.#closed) throw new OncegateError('store_unavailable', 'the lease was closed');
    const monotonicMs = this.#clock.monotonicMs();
    const wallMs = this.#clock.wallMs();
    const instance = randomUUID();
    await this.#store.openLease(instance, this.#leaseMs);
    if (this.#closed) return;
    // Its first, or one after a lapse, however that came.
    this.#steadySinceMs = this.#clock.monotonicMs();
    this.#acknowledged(monotonicMs, wallMs);
    this.#instance = instance;
  }

  /** A renewal that was sent at that moment. */
  #acknowledged(monotonicMs: number, wallMs: number): void {
    // To its answer, not to its sending: in its hang others could not renew either.
    if (this.#elapsedMs() > this.#gapMs) this.#steadySinceMs = this.#clock.monotonicMs();
    this.#monotonicMs = monotonicMs;
    this.#wallMs = wallMs;
    this.#renewedMs = monotonicMs;
  }

  get #gapMs(): number {
    return Math.max(this.#leaseMs * gapShare, this.#leaseMs / 3 + leastLatenessMs);
  }

  #elapsedMs(): number {
    const monotonic = this.#clock.monotonicMs() - this.#monotonicMs;
    const wall = this.#clock.wallMs() - this.#wallMs;
    return Math.max(monotonic, wall);
  }
}
