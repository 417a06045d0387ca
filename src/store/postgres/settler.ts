import { idOf, type State, type StoredAnswer, type StoredRecord, sourcesOf } from '../../core/record.ts';
import type { Held, SettleResult } from '../store.ts';
import { Batcher } from './batch.ts';
import { boolArray, byteaArray, float8Array, textArray } from './binary-array.ts';
import type { Pool } from './pool.ts';
import { readRecords } from './reader.ts';
import { compareIds } from './rows.ts';
import { confirm } from './sql/reserve.ts';
import { settle } from './sql/settle.ts';
import type { StatementError } from './statement-error.ts';

/** Milliseconds for one statement; longer than for a reservation, since giving up early only means asking again. */
const statementMs = 5_000;
/** Milliseconds between tries while the store is in trouble. */
const firstPauseMs = 50;
const longestPauseMs = 2_000;

export interface Settlement extends Held {
  readonly to: Extract<State, 'completed' | 'failed_retryable' | 'unknown'>;
  readonly status: number | null;
  readonly answer: StoredAnswer | null;
  readonly error: string | null;
  readonly retentionMs: number | null;
}

interface Item {
  settlement: Settlement;
  readonly resolve: (result: SettleResult) => void;
  /** An earlier try may have been committed: read before sending again. */
  doubtful: boolean;
  tries: number;
}

/** Completions, releases and doubts in micro-batches, repeated until the store has answered each. */
export class Settler {
  readonly #pool: Pool;
  readonly #batcher: Batcher<Item>;
  readonly #unsettled = new Set<Item>();
  readonly #whenEmpty: (() => void)[] = [];
  #closed = false;

  constructor(pool: Pool, slots: number) {
    this.#pool = pool;
    this.#batcher = new Batcher({
      run: (items) => this.#run(items),
      slots,
      maxRows: 256,
      maxBytes: 1_048_576,
      bytesOf: (item) =>
        200 + (item.settlement.answer?.headers.length ?? 0) + (item.settlement.answer?.body?.length ?? 0),
    });
  }

  get unsettled(): number {
    return this.#unsettled.size;
  }

  settle(settlement: Settlement): Promise<SettleResult> {
    return new Promise((resolve) => {
      if (this.#closed) {
        resolve({ kind: 'unconfirmed', cause: new Error('the store is closed') });
        return;
      }
      const item = { settlement, resolve, doubtful: false, tries: 0 };
      this.#unsettled.add(item);
      this.#batcher.push(item);
    });
  }

  /** Resolves when every settlement so far has its answer, also those between two tries. */
  async drained(): Promise<void> {
    if (this.#unsettled.size === 0) return;
    await new Promise<void>((resolve) => this.#whenEmpty.push(resolve));
  }

  /** What the store has not answered by now stays for the sweeper. */
  close(): void {
    this.#closed = true;
    for (const item of this.#unsettled) {
      this.#finish(item, { kind: 'unconfirmed', cause: new Error('the store was closed') });
    }
  }

  async #run(items: readonly Item[]): Promise<void> {
    const sorted = items.filter((item) => this.#unsettled.has(item));
    if (sorted.length === 0) return;
    sorted.sort((a, b) => compareIds(a.settlement, b.settlement));
    try {
      const toSend = sorted.some((item) => item.doubtful) ? await this.#readBack(sorted) : sorted;
      if (toSend.length > 0) await this.#send(toSend);
    } catch (error) {
      this.#afterFailure(sorted, error as StatementError);
    }
  }

  async #send(items: readonly Item[]): Promise<void> {
    const rows = await this.#pool.query(
      settle,
      settleValues(items.map((item) => item.settlement)),
      statementMs,
    );
    const settled = new Map(rows.map((row) => [row[0] as string, row[1] as number | null]));
    const refused: Item[] = [];
    for (const item of items) {
      const retainUntilMs = settled.get(item.settlement.attempt);
      if (retainUntilMs === undefined) refused.push(item);
      else this.#finish(item, { kind: 'settled', retainUntilMs });
    }
    if (refused.length === 0) return;
    for (const item of refused) item.doubtful = true;
    for (const item of await this.#readBack(refused)) this.#again(item);
  }

  /** Settles what can be settled by reading; gives back what still has to be sent. */
  async #readBack(items: readonly Item[]): Promise<Item[]> {
    const settlements = items.map((item) => item.settlement);
    const found = await readRecords(this.#pool, settlements, statementMs);
    const written: Item[] = [];
    const toSend: Item[] = [];
    for (const item of items) {
      const record = found.get(idOf(item.settlement)) ?? null;
      if (record !== null && isDone(record, item.settlement)) written.push(item);
      else if (record !== null && maySettle(record, item.settlement)) toSend.push(item);
      else this.#finish(item, { kind: 'refused', record });
    }
    if (written.length > 0) await this.#confirm(written);
    return toSend;
  }

  /** Visible is not yet durable: only an acknowledged write to the row is. */
  async #confirm(items: readonly Item[]): Promise<void> {
    const all = items.map((item) => item.settlement);
    const values = [
      byteaArray(all.map((one) => one.scope)),
      textArray(all.map((one) => one.key)),
      textArray(all.map((one) => one.attempt)),
      textArray(all.map((one) => one.to)),
    ];
    const rows = await this.#pool.query(confirm, values, statementMs);
    const confirmed = new Map(rows.map((row) => [row[0] as string, row[2] as number | null]));
    for (const item of items) {
      const retainUntilMs = confirmed.get(item.settlement.attempt);
      if (retainUntilMs === undefined) this.#again(item);
      else this.#finish(item, { kind: 'settled', retainUntilMs });
    }
  }

  #afterFailure(items: readonly Item[], failure: StatementError): void {
    const left = items.filter((item) => this.#unsettled.has(item));
    if (failure.concernsOneRow && left.length > 1) {
      // One row's fault must not hold its neighbours: each goes alone.
      for (const item of left) void this.#run([item]);
      return;
    }
    for (const item of left) {
      if (failure.isDataFault) item.settlement = lesser(item.settlement, failure);
      if (failure.failure === 'unconfirmed') item.doubtful = true;
      this.#again(item);
    }
  }

  #again(item: Item): void {
    if (!this.#unsettled.has(item)) return;
    const pauseMs = Math.min(firstPauseMs * 2 ** item.tries, longestPauseMs);
    item.tries += 1;
    setTimeout(() => this.#batcher.push(item), pauseMs);
  }

  #finish(item: Item, result: SettleResult): void {
    if (!this.#unsettled.delete(item)) return;
    item.resolve(result);
    if (this.#unsettled.size > 0) return;
    for (const resolve of this.#whenEmpty.splice(0)) resolve();
  }
}

function isDone(record: StoredRecord, settlement: Settlement): boolean {
  if (record.attempt !== settlement.attempt || record.state !== settlement.to) return false;
  const { answer } = settlement;
  if (answer === null) return true;
  // An operator may have completed it with another answer: then ours is not what is kept.
  const kept = record.answer;
  return kept !== null && kept.status === answer.status && sameBytes(kept.body, answer.body);
}

function sameBytes(a: Buffer | null, b: Buffer | null): boolean {
  return a === null || b === null ? a === b : a.equals(b);
}

/** Whether sending it (again) can succeed; the statement's own guard decides in the end. */
function maySettle(record: StoredRecord, settlement: Settlement): boolean {
  return record.attempt === settlement.attempt && sourcesOf(settlement.to, 'attempt').includes(record.state);
}

/** A completion that the server will not take as it is: first without its body, then as unknown. */
function lesser(settlement: Settlement, failure: StatementError): Settlement {
  const { answer } = settlement;
  if (answer !== null && answer.body !== null) return { ...settlement, answer: { ...answer, body: null } };
  const error = `not storable: ${failure.sqlState}`;
  return { ...settlement, to: 'unknown', answer: null, error, retentionMs: null };
}

function settleValues(all: readonly Settlement[]): unknown[] {
  return [
    byteaArray(all.map((one) => one.scope)),
    textArray(all.map((one) => one.key)),
    textArray(all.map((one) => one.attempt)),
    textArray(all.map((one) => one.to)),
    float8Array(all.map((one) => one.status)),
    byteaArray(all.map((one) => one.answer?.headers ?? null)),
    byteaArray(all.map((one) => one.answer?.body ?? null)),
    boolArray(all.map((one) => one.answer?.closeFramed ?? false)),
    textArray(all.map((one) => one.error)),
    float8Array(all.map((one) => one.retentionMs)),
  ];
}
