import { idOf } from '../../core/record.ts';
import type { Reservation, ReserveResult } from '../store.ts';
import { asciiArray, boolArray, byteaArray, float8Array, textArray } from './binary-array.ts';
import { FoldingQueue } from './folding-queue.ts';
import { type Front, wentAway } from './front.ts';
import type { Rows } from './pool.ts';
import { ruleText } from './rows.ts';
import { reserve } from './sql/reserve.ts';
import type { StatementError } from './statement-error.ts';

/** Tries of one reservation: the first, and one more after a read-back showed nothing of it. */
const maxTries = 2;

/** Reservations in micro-batches. */
export class Reserver {
  readonly #front: Front;
  readonly #queue: FoldingQueue;

  constructor(front: Front, slots: number, queueMs: number) {
    this.#front = front;
    this.#queue = new FoldingQueue({
      nameOf: idOf,
      send: (wanted) =>
        this.#reserveAll(
          wanted.map((one) => one.reservation),
          1,
        ),
      admits: () => front.admits,
      slots,
      queueMs,
    });
  }

  reserve(reservation: Reservation): Promise<ReserveResult> {
    return this.#queue.push(reservation, null);
  }

  /** One result per reservation, in order. Never rejects. */
  async #reserveAll(reservations: readonly Reservation[], inserts: number): Promise<ReserveResult[]> {
    try {
      const rows = await this.#front.ask(reserve, reserveValues(reservations));
      const results = allReserved(reservations, rows);
      if (results !== null) return results;
      const epochs = new Map<string, string>();
      for (const row of rows) epochs.set(row[0] as string, row[1] as string);
      return await this.#withEpochs(reservations, epochs, inserts > 1);
    } catch (error) {
      return await this.#afterFailure(reservations, error as StatementError, inserts);
    }
  }

  /** Who got an epoch owns its key; whoever did not reads the record with a statement of its own. */
  async #withEpochs(
    reservations: readonly Reservation[],
    epochs: Map<string, string>,
    mayExist: boolean,
  ): Promise<ReserveResult[]> {
    const losers = reservations.filter((reservation) => !epochs.has(reservation.attempt));
    const lost = new Map<Reservation, ReserveResult>();
    if (losers.length > 0) {
      // A failure here must not cost the winners their reservation: it was acknowledged.
      const results = await this.#front.findOut(losers).catch((error: StatementError) => {
        return losers.map((): ReserveResult => ({ kind: 'unavailable', cause: error, mayExist }));
      });
      losers.forEach((loser, index) => {
        lost.set(loser, results[index] ?? wentAway(mayExist));
      });
    }
    return reservations.map((reservation) => {
      const epoch = epochs.get(reservation.attempt);
      return epoch === undefined ? (lost.get(reservation) as ReserveResult) : { kind: 'reserved', epoch };
    });
  }

  async #afterFailure(
    all: readonly Reservation[],
    failure: StatementError,
    inserts: number,
  ): Promise<ReserveResult[]> {
    // The server answered twice, and it may be one row that fails them all.
    const goAlone = failure.concernsOneRow || (inserts === maxTries && failure.mayConcernOneRow);
    if (goAlone && all.length > 1) {
      const singles = await Promise.all(all.map((one) => this.#reserveAll([one], inserts)));
      return singles.flat();
    }
    // By this statement or the one before.
    const mayExist = failure.failure === 'unconfirmed' || inserts > 1;
    if (failure.failure !== 'unconfirmed')
      return all.map(() => ({ kind: 'unavailable', cause: failure, mayExist }));
    try {
      const known = await this.#front.findOut(all);
      const absent = all.filter((_, index) => known[index] === null);
      // The first insert may still be on its way: the same attempt again is safe, a new one would not be.
      const again: ReserveResult[] =
        absent.length > 0 && inserts < maxTries
          ? await this.#reserveAll(absent, inserts + 1)
          : absent.map(() => ({ kind: 'unavailable', cause: failure, mayExist }));
      return known.map((result) => result ?? (again.shift() as ReserveResult));
    } catch (error) {
      return all.map(() => ({ kind: 'unavailable', cause: error as StatementError, mayExist }));
    }
  }
}

/** The usual case: every key was new, and the rows come in the order of the items. null: not so. */
function allReserved(reservations: readonly Reservation[], rows: Rows): ReserveResult[] | null {
  if (rows.length !== reservations.length) return null;
  const results: ReserveResult[] = [];
  for (let i = 0; i < rows.length; i += 1) {
    const [attempt, epoch] = rows[i] as [string, string];
    if (attempt !== reservations[i]?.attempt) return null;
    results.push({ kind: 'reserved', epoch });
  }
  return results;
}

export function reserveValues(all: readonly Reservation[]): unknown[] {
  return [
    byteaArray(all.map((one) => one.scope)),
    asciiArray(all.map((one) => one.key)),
    ...attemptValues(all),
  ];
}

/** What an attempt writes into its record, whether new or taken over, in the order of both statements. */
export function attemptValues(all: readonly Reservation[]): unknown[] {
  return [
    asciiArray(all.map((one) => one.attempt)),
    asciiArray(all.map((one) => one.instance)),
    boolArray(all.map((one) => one.hadCredentials)),
    byteaArray(all.map((one) => one.fingerprint.digest)),
    byteaArray(all.map((one) => one.fingerprint.raw)),
    asciiArray(all.map((one) => ruleText(one.fingerprint))),
    float8Array(all.map((one) => one.deadlineMs)),
    textArray(all.map((one) => one.tenant)),
    asciiArray(all.map((one) => one.method)),
    textArray(all.map((one) => one.path)),
    asciiArray(all.map((one) => one.requestId)),
    boolArray(all.map((one) => one.marks)),
  ];
}
