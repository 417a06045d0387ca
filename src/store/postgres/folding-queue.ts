import type { StoredRecord } from '../../core/record.ts';
import { now } from '../moment.ts';
import type { Reservation, ReserveResult } from '../store.ts';
import { Batcher } from './batch.ts';
import { compareIds, recordOf } from './rows.ts';

/** Callers that may wait for a decision; beyond it one is refused before memory grows. */
const maxWaiting = 20_000;

interface Wanted {
  readonly reservation: Reservation;
  /** What it takes over; null: a new record. */
  readonly previous: StoredRecord | null;
}

export interface FoldingOptions {
  /** Wants of equal names are one row. */
  readonly nameOf: (reservation: Reservation, previous: StoredRecord | null) => string;
  /** One result each, in order; they come sorted by key. Must never reject. */
  readonly send: (wanted: readonly Wanted[]) => Promise<ReserveResult[]>;
  /** false: the server does not answer. */
  readonly admits: () => boolean;
  readonly slots: number;
  /** Milliseconds in the queue beyond which one is refused. */
  readonly queueMs: number;
}

/**
 * A small cell, so that hash tables that V8 has outgrown retain this and not the request: a table that was left behind keeps its
 * entries alive until V8 has gone through the whole heap.
 */
interface Lead {
  item: Item | null;
}

interface Item extends Wanted {
  readonly name: string;
  readonly lead: Lead;
  /** By `busyMs` of the batcher: a slow process must not be taken for a slow store. */
  readonly queuedAtMs: number;
  readonly resolve: (result: ReserveResult) => void;
  /** Callers that wanted the same while this one was undecided. */
  readonly followers: (Wanted & { readonly resolve: (result: ReserveResult) => void })[];
}

/** Wants in micro-batches. Equal ones are folded: one row is sent, the others learn what became of it. */
export class FoldingQueue {
  readonly #options: FoldingOptions;
  readonly #batcher: Batcher<Item>;
  #followers = 0;
  readonly #undecided = new Map<string, Lead>();

  constructor(options: FoldingOptions) {
    this.#options = options;
    this.#batcher = new Batcher({
      run: (items) => this.#run(items),
      slots: options.slots,
      maxRows: 256,
      maxBytes: 1_048_576,
      // Digests, ids and numbers come to about this; only the path is long at times.
      bytesOf: (item) => 500 + item.reservation.path.length,
    });
  }

  push(reservation: Reservation, previous: StoredRecord | null): Promise<ReserveResult> {
    return new Promise((resolve) => {
      if (!this.#options.admits()) {
        resolve(notAnswering());
        return;
      }
      if (this.#batcher.depth + this.#followers >= maxWaiting) {
        resolve(unsent('too many reservations are waiting'));
        return;
      }
      const name = this.#options.nameOf(reservation, previous);
      const leader = this.#undecided.get(name)?.item ?? null;
      if (leader !== null) {
        leader.followers.push({ reservation, previous, resolve });
        this.#followers += 1;
        return;
      }
      const queuedAtMs = this.#batcher.busyMs;
      const lead: Lead = { item: null };
      const item: Item = { reservation, previous, name, lead, queuedAtMs, resolve, followers: [] };
      lead.item = item;
      this.#undecided.set(name, lead);
      this.#batcher.push(item);
    });
  }

  async #run(items: readonly Item[]): Promise<void> {
    const wanted: Item[] = [];
    const nowMs = this.#batcher.busyMs;
    // It opened while they stood in the queue.
    const isRefused = !this.#options.admits();
    for (const item of items) {
      if (item.reservation.abandoned()) this.#decide(item, { kind: 'abandoned' });
      else if (isRefused) this.#decide(item, notAnswering());
      else if (nowMs - item.queuedAtMs > this.#options.queueMs) this.#decide(item, waitedTooLong());
      else wanted.push(item);
    }
    if (wanted.length === 0) return;
    wanted.sort((a, b) => compareIds(a.reservation, b.reservation));
    const results = await this.#options.send(wanted);
    wanted.forEach((item, index) => {
      this.#decide(item, results[index] as ReserveResult);
    });
  }

  #decide(item: Item, result: ReserveResult): void {
    this.#undecided.delete(item.name);
    item.lead.item = null;
    item.resolve(result);
    if (item.followers.length === 0) return;
    this.#followers -= item.followers.length;
    // The leader left without deciding anything: the first follower leads.
    if (result.kind === 'abandoned') {
      for (const { reservation, previous, resolve } of item.followers) {
        // Asked here too, or a crowd that has gone would take a turn each, all of the rest moving up every time.
        if (reservation.abandoned()) resolve(result);
        else void this.push(reservation, previous).then(resolve);
      }
      return;
    }
    const seen: ReserveResult =
      result.kind === 'reserved'
        ? {
            kind: 'exists',
            record: recordOf(item.reservation, result.epoch),
            look: { asked: now(), retainForMs: null },
          }
        : result.kind === 'unavailable'
          ? // Of the followers nothing was sent.
            { ...result, mayExist: false }
          : result;
    for (const follower of item.followers) follower.resolve(seen);
  }
}

function notAnswering(): ReserveResult {
  return unsent('the store has not answered lately');
}

function waitedTooLong(): ReserveResult {
  return unsent('too slow: waited too long for its turn');
}

function unsent(why: string): ReserveResult {
  return { kind: 'unavailable', cause: new Error(why), mayExist: false };
}
