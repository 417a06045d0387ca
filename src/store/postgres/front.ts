import { idOf } from '../../core/record.ts';
import { now } from '../moment.ts';
import type { Reservation, ReserveResult } from '../store.ts';
import { byteaArray, textArray } from './binary-array.ts';
import { Breaker } from './breaker.ts';
import type { Pool, Rows } from './pool.ts';
import { readRecords } from './reader.ts';
import { compareIds } from './rows.ts';
import { confirm } from './sql/reserve.ts';
import type { Statement } from './sql/statement.ts';
import type { StatementError } from './statement-error.ts';

/** What reservations and takeovers share: the connections, the breaker in front of them, and how an unconfirmed write is read back. */
export class Front {
  readonly #pool: Pool;
  readonly #timeoutMs: number;
  readonly #breaker = new Breaker();

  constructor(pool: Pool, timeoutMs: number) {
    this.#pool = pool;
    this.#timeoutMs = timeoutMs;
  }

  /** false: the server does not answer; whoever wants a key is refused at once. */
  get admits(): boolean {
    return this.#breaker.admits;
  }

  /** Rejects with a StatementError. */
  async ask(what: Statement, values: unknown[]): Promise<Rows> {
    this.#breaker.began();
    try {
      const rows = await this.#pool.query(what, values, this.#timeoutMs);
      this.#breaker.answered();
      return rows;
    } catch (error) {
      this.#breaker.failed(error as StatementError);
      throw error;
    }
  }

  /**
   * Reads the records; those that are ours count only after an acknowledged write. null: no record. Rejects if the records cannot be
   * read; a write that fails costs only whoever needed it.
   */
  async findOut(reservations: readonly Reservation[]): Promise<(ReserveResult | null)[]> {
    const asked = now();
    const found = await readRecords(this.#pool, reservations, this.#timeoutMs);
    const mine = reservations.filter((reservation) => {
      const record = found.get(idOf(reservation))?.record;
      return record?.attempt === reservation.attempt && record.state === 'in_progress';
    });
    const confirmed = new Map<string, ReserveResult>();
    if (mine.length > 0) await this.#confirm(mine, confirmed);
    return reservations.map((reservation) => {
      const result = confirmed.get(reservation.attempt);
      if (result !== undefined) return result;
      const one = found.get(idOf(reservation));
      if (one === undefined) return null;
      const { record, retainForMs } = one;
      return { kind: 'exists', record, look: { asked, retainForMs } };
    });
  }

  /** By attempt; none for one that is no longer ours. */
  async #confirm(mine: readonly Reservation[], results: Map<string, ReserveResult>): Promise<void> {
    try {
      const sorted = mine.toSorted(compareIds);
      const rows = await this.ask(confirm, [
        byteaArray(sorted.map((one) => one.scope)),
        textArray(sorted.map((one) => one.key)),
        textArray(sorted.map((one) => one.attempt)),
        textArray(sorted.map(() => 'in_progress')),
      ]);
      for (const row of rows) results.set(row[0] as string, { kind: 'reserved', epoch: row[1] as string });
    } catch (error) {
      const failure = error as StatementError;
      if (failure.concernsOneRow && mine.length > 1)
        await Promise.all(mine.map((one) => this.#confirm([one], results)));
      else
        for (const { attempt } of mine)
          results.set(attempt, { kind: 'unavailable', cause: failure, mayExist: true });
    }
  }
}

/** Reaped between the two statements: the client's retry finds the key free. */
export function wentAway(mayExist: boolean): ReserveResult {
  return { kind: 'unavailable', cause: new Error('the record went away'), mayExist };
}
