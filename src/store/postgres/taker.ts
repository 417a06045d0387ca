import { idOf, type StoredRecord } from '../../core/record.ts';
import type { Reservation, ReserveResult } from '../store.ts';
import { asciiArray, byteaArray } from './binary-array.ts';
import { FoldingQueue } from './folding-queue.ts';
import { type Front, wentAway } from './front.ts';
import { attemptValues } from './reserver.ts';
import { takeOver } from './sql/reserve.ts';
import type { StatementError } from './statement-error.ts';

/** Tries of one takeover: the first, and one more after a read-back showed the record as it was. */
const maxTries = 2;

interface TakeOver {
  readonly reservation: Reservation;
  readonly previous: StoredRecord;
}

/** Takeovers in micro-batches, of their own: they do not hold up new keys. */
export class Taker {
  readonly #front: Front;
  readonly #queue: FoldingQueue;

  constructor(front: Front, slots: number, queueMs: number) {
    this.#front = front;
    this.#queue = new FoldingQueue({
      // Of those that saw the same one wins. Who saw something else has a row of its own: no record fits two guards.
      nameOf: (reservation, previous) => idOf(reservation) + guardOf(previous as StoredRecord),
      send: (wanted) => this.#takeOverAll(wanted as readonly TakeOver[], 1),
      admits: () => front.admits,
      slots,
      queueMs,
    });
  }

  takeOver(previous: StoredRecord, reservation: Reservation): Promise<ReserveResult> {
    return this.#queue.push(reservation, previous);
  }

  /** One result each, in order. Never rejects. */
  async #takeOverAll(all: readonly TakeOver[], tries: number): Promise<ReserveResult[]> {
    const results = new Map<TakeOver, ReserveResult>();
    let failure: StatementError | null = null;
    try {
      const rows = await this.#front.ask(takeOver, takeOverValues(all));
      const epochs = new Map(rows.map(([attempt, epoch]) => [attempt as string, epoch as string]));
      for (const one of all) {
        const epoch = epochs.get(one.reservation.attempt);
        if (epoch !== undefined) results.set(one, { kind: 'reserved', epoch });
      }
    } catch (error) {
      failure = error as StatementError;
      // The server answered twice, and it may be one row that fails them all.
      const goAlone = failure.concernsOneRow || (tries === maxTries && failure.mayConcernOneRow);
      if (goAlone && all.length > 1) {
        const singles = await Promise.all(all.map((one) => this.#takeOverAll([one], tries)));
        return singles.flat();
      }
      if (failure.failure !== 'unconfirmed')
        return all.map(() => unavailable(failure as StatementError, tries > 1));
    }
    const others = all.filter((one) => !results.has(one));
    if (others.length > 0) await this.#readBack(others, failure, tries, results);
    return all.map((one) => results.get(one) as ReserveResult);
  }

  /** The guard did not hold, or nobody knows: whose is the key now? Absent counts as unavailable; a retry starts anew. */
  async #readBack(
    others: readonly TakeOver[],
    failure: StatementError | null,
    tries: number,
    results: Map<TakeOver, ReserveResult>,
  ): Promise<void> {
    // By this statement or the one before.
    const mayExist = failure !== null || tries > 1;
    let known: (ReserveResult | null)[];
    try {
      known = await this.#front.findOut(others.map((one) => one.reservation));
    } catch (error) {
      for (const one of others) results.set(one, unavailable(error as StatementError, mayExist));
      return;
    }
    const again: TakeOver[] = [];
    others.forEach((one, index) => {
      const result = known[index] ?? wentAway(mayExist);
      const isUnchanged = result.kind === 'exists' && result.record.attempt === one.previous.attempt;
      if (failure === null || !isUnchanged) results.set(one, result);
      // Of the same statement twice, whichever comes second finds the guard gone.
      else if (tries < maxTries) again.push(one);
      else results.set(one, unavailable(failure, mayExist));
    });
    if (again.length === 0) return;
    const repeated = await this.#takeOverAll(again, tries + 1);
    again.forEach((one, index) => {
      results.set(one, repeated[index] as ReserveResult);
    });
  }
}

function unavailable(cause: StatementError, mayExist: boolean): ReserveResult {
  return { kind: 'unavailable', cause, mayExist };
}

function guardOf({ attempt, epoch, state }: StoredRecord): string {
  return `${attempt}${epoch}${state}`;
}

export function takeOverValues(all: readonly TakeOver[]): unknown[] {
  return [
    byteaArray(all.map((one) => one.reservation.scope)),
    asciiArray(all.map((one) => one.reservation.key)),
    asciiArray(all.map((one) => one.previous.attempt)),
    asciiArray(all.map((one) => one.previous.epoch)),
    asciiArray(all.map((one) => one.previous.state)),
    ...attemptValues(all.map((one) => one.reservation)),
  ];
}
