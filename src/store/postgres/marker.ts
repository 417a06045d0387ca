import type { Held, MarkResult } from '../store.ts';
import { Batcher } from './batch.ts';
import { byteaArray, textArray } from './binary-array.ts';
import type { Pool } from './pool.ts';
import { compareIds } from './rows.ts';
import { markDispatched } from './sql/reserve.ts';
import type { StatementError } from './statement-error.ts';

interface Item {
  readonly held: Held;
  readonly resolve: (result: MarkResult) => void;
}

/** Marks in micro-batches. What is not acknowledged is not read back: nothing was sent, so its caller releases the key. */
export class Marker {
  readonly #pool: Pool;
  readonly #timeoutMs: number;
  readonly #batcher: Batcher<Item>;

  constructor(pool: Pool, slots: number, timeoutMs: number) {
    this.#pool = pool;
    this.#timeoutMs = timeoutMs;
    this.#batcher = new Batcher({
      run: (items) => this.#run(items),
      slots,
      maxRows: 256,
      maxBytes: 1_048_576,
      bytesOf: () => 200,
    });
  }

  mark(held: Held): Promise<MarkResult> {
    return new Promise((resolve) => this.#batcher.push({ held, resolve }));
  }

  async #run(items: readonly Item[]): Promise<void> {
    const sorted = items.toSorted((a, b) => compareIds(a.held, b.held));
    const all = sorted.map((item) => item.held);
    const values = [
      byteaArray(all.map((one) => one.scope)),
      textArray(all.map((one) => one.key)),
      textArray(all.map((one) => one.attempt)),
    ];
    try {
      const rows = await this.#pool.query(markDispatched, values, this.#timeoutMs);
      const marked = new Set(rows.map((row) => row[0]));
      for (const { held, resolve } of sorted)
        resolve({ kind: marked.has(held.attempt) ? 'marked' : 'refused' });
    } catch (error) {
      const failure = error as StatementError;
      // A row that somebody has locked, or that the server never takes, must not hold its neighbours.
      if (failure.mayConcernOneRow && sorted.length > 1)
        await Promise.all(sorted.map((item) => this.#run([item])));
      else for (const { resolve } of sorted) resolve({ kind: 'unavailable', cause: failure });
    }
  }
}
