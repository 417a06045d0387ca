import { idOf, type RecordId, type StoredRecord } from '../core/record.ts';
import type { Store } from '../store/store.ts';

/** Waiters hold a socket and a few hundred bytes each, no connection and no body; beyond these a caller gets 409 at once. */
const maxPerKey = 1_000;
const maxInAll = 10_000;
/** Milliseconds between looks at the store, for all waiters together: at most ten queries a second. */
const pollMs = 100;
/** Keys in one look. */
const pollRows = 256;

interface Watched {
  readonly id: RecordId;
  readonly attempt: string;
  readonly waiters: Set<(record: StoredRecord | null) => void>;
}

interface Patience {
  readonly waitMs: number;
  /** Resolves when nobody is there any more to be told. */
  readonly left: Promise<void>;
}

/** Duplicates in flight, waiting for the attempt of another process. They share one poller and never own a key. */
export class Waiters {
  readonly #store: Store;
  readonly #watched = new Map<string, Watched>();
  readonly #perKey = new Map<string, number>();
  #inAll = 0;
  #timer: NodeJS.Timeout | null = null;
  #from = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Room for one more on this key, here or on an attempt of this process; `leave` gives it back. */
  enter(id: RecordId): boolean {
    const name = idOf(id);
    const count = this.#perKey.get(name) ?? 0;
    if (count >= maxPerKey || this.#inAll >= maxInAll) return false;
    this.#perKey.set(name, count + 1);
    this.#inAll += 1;
    return true;
  }

  leave(id: RecordId): void {
    const name = idOf(id);
    const count = this.#perKey.get(name) ?? 0;
    if (count <= 1) this.#perKey.delete(name);
    else this.#perKey.set(name, count - 1);
    this.#inAll -= 1;
  }

  /** The record once that attempt is no longer in progress; null: still in progress after `waitMs`, or the client left. */
  settled(id: RecordId, attempt: string, { waitMs, left }: Patience): Promise<StoredRecord | null> {
    return new Promise((resolve) => {
      const name = idOf(id) + attempt;
      const watched = this.#watched.get(name) ?? { id, attempt, waiters: new Set() };
      this.#watched.set(name, watched);
      const settle = (record: StoredRecord | null) => {
        // Only once: by then others may wait under the same name.
        if (!watched.waiters.delete(settle)) return;
        clearTimeout(timer);
        if (watched.waiters.size === 0) this.#watched.delete(name);
        resolve(record);
      };
      const timer = setTimeout(settle, waitMs, null);
      watched.waiters.add(settle);
      void left.then(() => settle(null));
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#timer !== null || this.#watched.size === 0) return;
    // Jitter: replicas that wait for the same key must not ask in step.
    this.#timer = setTimeout(() => void this.#look(), pollMs * (1 + Math.random() / 4));
  }

  async #look(): Promise<void> {
    const all = [...this.#watched.values()];
    if (all.length === 0) {
      this.#timer = null;
      return;
    }
    // Takes turns when there are more than one look can hold.
    const from = this.#from < all.length ? this.#from : 0;
    this.#from = from + pollRows;
    const batch = all.slice(from, from + pollRows);
    // The store may be down for a while: the waiters' own time decides.
    const records = await this.#store.read(batch.map((one) => one.id)).catch(() => null);
    if (records !== null) {
      batch.forEach((one, index) => {
        const record = records[index] ?? null;
        if (record === null || (record.attempt === one.attempt && record.state === 'in_progress')) return;
        for (const settle of one.waiters) settle(record);
      });
    }
    this.#timer = null;
    this.#schedule();
  }
}
