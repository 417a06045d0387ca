import { idOf, type StoredRecord } from '../../core/record.ts';
import { now } from '../moment.ts';
import type { Reservation, ReserveResult } from '../store.ts';
import { Batcher } from './batch.ts';
import { asciiArray, boolArray, byteaArray, float8Array, textArray } from './binary-array.ts';
import { Breaker } from './breaker.ts';
import type { Pool, Rows } from './pool.ts';
import { readRecords } from './reader.ts';
import { compareIds, recordOf } from './rows.ts';
import { confirm, reserve, takeOver } from './sql/reserve.ts';
import type { Statement } from './sql/statement.ts';
import type { StatementError } from './statement-error.ts';
import type { Timeouts } from './timeouts.ts';

/** Tries of one reservation: the first, and one more after a read-back showed nothing of it. */
const maxTries = 2;
/** Callers that may wait for a decision; beyond it a reservation is refused before memory grows. */
const maxWaiting = 20_000;

/**
 * All that the map of what is undecided holds. A map outgrows its tables all the time, and a table that was left behind keeps what
 * stood in it alive until V8 has looked through the whole heap: were that items, with them each request that had been under way.
 */
interface Lead {
  item: Item | null;
}

interface Item {
  readonly reservation: Reservation;
  readonly id: string;
  readonly lead: Lead;
  /** By `busyMs` of the batcher: a slow process must not be taken for a slow store. */
  readonly queuedAtMs: number;
  readonly resolve: (result: ReserveResult) => void;
  /** Callers of the same key that came while this one was undecided. */
  readonly followers: {
    readonly reservation: Reservation;
    readonly resolve: (result: ReserveResult) => void;
  }[];
}

/** Reservations in micro-batches. Equal keys are folded: one row is sent, the others learn what became of it. */
export class Reserver {
  readonly #pool: Pool;
  readonly #timeouts: Timeouts;
  readonly #batcher: Batcher<Item>;
  readonly #breaker = new Breaker();
  #followers = 0;
  readonly #undecided = new Map<string, Lead>();

  constructor(pool: Pool, slots: number, timeouts: Timeouts) {
    this.#pool = pool;
    this.#timeouts = timeouts;
    this.#batcher = new Batcher({
      run: (items) => this.#run(items),
      slots,
      maxRows: 256,
      maxBytes: 1_048_576,
      // Digests, ids and numbers come to about this; only the path is long at times.
      bytesOf: (item) => 400 + item.reservation.path.length,
    });
  }

  /** The server does not answer: reservations are refused at once. */
  get isRefusing(): boolean {
    return !this.#breaker.admits;
  }

  reserve(reservation: Reservation): Promise<ReserveResult> {
    return new Promise((resolve) => {
      if (!this.#breaker.admits) {
        resolve(notAnswering());
        return;
      }
      if (this.#batcher.depth + this.#followers >= maxWaiting) {
        resolve({ kind: 'unavailable', cause: new Error('too many reservations are waiting') });
        return;
      }
      const id = idOf(reservation);
      const leader = this.#undecided.get(id)?.item ?? null;
      if (leader !== null) {
        leader.followers.push({ reservation, resolve });
        this.#followers += 1;
        return;
      }
      const queuedAtMs = this.#batcher.busyMs;
      const lead: Lead = { item: null };
      const item: Item = { reservation, id, lead, queuedAtMs, resolve, followers: [] };
      lead.item = item;
      this.#undecided.set(id, lead);
      this.#batcher.push(item);
    });
  }

  async takeOver(previous: StoredRecord, reservation: Reservation): Promise<ReserveResult> {
    if (reservation.abandoned()) return { kind: 'abandoned' };
    if (!this.#breaker.admits) return notAnswering();
    const values = takeOverValues(previous, reservation);
    for (let tries = 1; ; tries += 1) {
      let failure: StatementError | null = null;
      try {
        const [row] = await this.#ask(takeOver, values);
        if (row !== undefined) return { kind: 'reserved', epoch: row[0] as string };
      } catch (error) {
        failure = error as StatementError;
        if (failure.failure !== 'unconfirmed') return { kind: 'unavailable', cause: failure };
      }
      const now = await this.#readBack(reservation);
      const isUnchanged = now.kind === 'exists' && now.record.attempt === previous.attempt;
      if (failure === null || !isUnchanged) return now;
      // Of the same statement twice, whichever comes second finds the guard gone.
      if (tries === maxTries) return { kind: 'unavailable', cause: failure };
    }
  }

  /** The guard did not hold, or nobody knows: whose is the key now? Absent counts as unavailable; a retry starts anew. */
  async #readBack(reservation: Reservation): Promise<ReserveResult> {
    try {
      const [result] = await this.#findOut([reservation]);
      return result ?? { kind: 'unavailable', cause: new Error('the record went away') };
    } catch (error) {
      return { kind: 'unavailable', cause: error as StatementError };
    }
  }

  async #run(items: readonly Item[]): Promise<void> {
    const wanted: Item[] = [];
    const nowMs = this.#batcher.busyMs;
    // It opened while they stood in the queue.
    const isRefused = !this.#breaker.admits;
    for (const item of items) {
      if (item.reservation.abandoned()) this.#decide(item, { kind: 'abandoned' });
      else if (isRefused) this.#decide(item, notAnswering());
      else if (nowMs - item.queuedAtMs > this.#timeouts.queueMs) this.#decide(item, waitedTooLong());
      else wanted.push(item);
    }
    if (wanted.length === 0) return;
    wanted.sort((a, b) => compareIds(a.reservation, b.reservation));
    const results = await this.#reserveAll(
      wanted.map((item) => item.reservation),
      1,
    );
    wanted.forEach((item, index) => {
      this.#decide(item, results[index] as ReserveResult);
    });
  }

  /** One result per reservation, in order. Never rejects. */
  async #reserveAll(reservations: readonly Reservation[], inserts: number): Promise<ReserveResult[]> {
    try {
      const rows = await this.#ask(reserve, insertValues(reservations));
      const results = allReserved(reservations, rows);
      if (results !== null) return results;
      const epochs = new Map<string, string>();
      for (const row of rows) epochs.set(row[0] as string, row[1] as string);
      return await this.#withEpochs(reservations, epochs);
    } catch (error) {
      return await this.#afterFailure(reservations, error as StatementError, inserts);
    }
  }

  async #ask(what: Statement, values: unknown[]): Promise<Rows> {
    this.#breaker.began();
    try {
      const rows = await this.#pool.query(what, values, this.#timeouts.reserveMs);
      this.#breaker.answered();
      return rows;
    } catch (error) {
      this.#breaker.failed(error as StatementError);
      throw error;
    }
  }

  /** Who got an epoch owns its key; whoever did not reads the record with a statement of its own. */
  async #withEpochs(
    reservations: readonly Reservation[],
    epochs: Map<string, string>,
  ): Promise<ReserveResult[]> {
    const losers = reservations.filter((reservation) => !epochs.has(reservation.attempt));
    const lost = new Map<Reservation, ReserveResult>();
    if (losers.length > 0) {
      // A failure here must not cost the winners their reservation: it was acknowledged.
      const results = await this.#findOut(losers).catch((error: StatementError) => {
        return losers.map((): ReserveResult => ({ kind: 'unavailable', cause: error }));
      });
      losers.forEach((loser, index) => {
        // Reaped between the two statements: the client's retry finds the key free.
        lost.set(loser, results[index] ?? { kind: 'unavailable', cause: new Error('the record went away') });
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
    if (failure.concernsOneRow && all.length > 1) {
      const singles = await Promise.all(all.map((one) => this.#reserveAll([one], inserts)));
      return singles.flat();
    }
    if (failure.failure !== 'unconfirmed') return all.map(() => ({ kind: 'unavailable', cause: failure }));
    try {
      const known = await this.#findOut(all);
      const absent = all.filter((_, index) => known[index] === null);
      // The first insert may still be on its way: the same attempt again is safe, a new one would not be.
      const again: ReserveResult[] =
        absent.length > 0 && inserts < maxTries
          ? await this.#reserveAll(absent, inserts + 1)
          : absent.map(() => ({ kind: 'unavailable', cause: failure }));
      return known.map((result) => result ?? (again.shift() as ReserveResult));
    } catch (error) {
      return all.map(() => ({ kind: 'unavailable', cause: error as StatementError }));
    }
  }

  /** Reads the records; those that are ours count only after an acknowledged write. null: no record. */
  async #findOut(reservations: readonly Reservation[]): Promise<(ReserveResult | null)[]> {
    const asked = now();
    const found = await readRecords(this.#pool, reservations, this.#timeouts.reserveMs);
    const mine = reservations.filter((reservation) => {
      const record = found.get(idOf(reservation))?.record;
      return record?.attempt === reservation.attempt && record.state === 'in_progress';
    });
    const epochs = new Map<string, string>();
    if (mine.length > 0) {
      const rows = await this.#ask(confirm, [
        byteaArray(mine.map((one) => one.scope)),
        textArray(mine.map((one) => one.key)),
        textArray(mine.map((one) => one.attempt)),
        textArray(mine.map(() => 'in_progress')),
      ]);
      for (const row of rows) epochs.set(row[0] as string, row[1] as string);
    }
    return reservations.map((reservation) => {
      const epoch = epochs.get(reservation.attempt);
      if (epoch !== undefined) return { kind: 'reserved', epoch };
      const one = found.get(idOf(reservation));
      if (one === undefined) return null;
      const { record, retainForMs } = one;
      return { kind: 'exists', record, look: { asked, retainForMs } };
    });
  }

  #decide(item: Item, result: ReserveResult): void {
    this.#undecided.delete(item.id);
    item.lead.item = null;
    item.resolve(result);
    if (item.followers.length === 0) return;
    this.#followers -= item.followers.length;
    // The leader left without deciding anything: the first follower leads.
    if (result.kind === 'abandoned') {
      for (const { reservation, resolve } of item.followers) {
        // Asked here too, or a crowd that has gone would take a turn each, all of the rest moving up every time.
        if (reservation.abandoned()) resolve(result);
        else void this.reserve(reservation).then(resolve);
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
        : result;
    for (const follower of item.followers) follower.resolve(seen);
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

function notAnswering(): ReserveResult {
  return { kind: 'unavailable', cause: new Error('the store has not answered lately') };
}

function waitedTooLong(): ReserveResult {
  return { kind: 'unavailable', cause: new Error('too slow: waited too long for its turn') };
}

function insertValues(all: readonly Reservation[]): unknown[] {
  return [
    byteaArray(all.map((one) => one.scope)),
    asciiArray(all.map((one) => one.key)),
    asciiArray(all.map((one) => one.attempt)),
    asciiArray(all.map((one) => one.instance)),
    boolArray(all.map((one) => one.hadCredentials)),
    byteaArray(all.map((one) => one.fingerprint.digest)),
    byteaArray(all.map((one) => one.fingerprint.raw)),
    asciiArray(all.map((one) => one.fingerprint.rule)),
    float8Array(all.map((one) => one.deadlineMs)),
    textArray(all.map((one) => one.tenant)),
    asciiArray(all.map((one) => one.method)),
    textArray(all.map((one) => one.path)),
    asciiArray(all.map((one) => one.requestId)),
    boolArray(all.map((one) => one.marks)),
  ];
}

function takeOverValues(previous: StoredRecord, next: Reservation): unknown[] {
  const { scope, key, attempt, instance, fingerprint } = next;
  const guard = [scope, key, previous.attempt, previous.epoch, previous.state];
  const identity = [
    attempt,
    instance,
    next.hadCredentials,
    fingerprint.digest,
    fingerprint.raw,
    fingerprint.rule,
  ];
  const request = [next.tenant, next.method, next.path, next.requestId];
  return [...guard, ...identity, next.deadlineMs, ...request, next.marks];
}
