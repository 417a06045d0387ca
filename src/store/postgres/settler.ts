import { idOf, type State, type StoredAnswer, type StoredRecord, sourcesOf } from '../../core/record.ts';
import type { Held, SettleResult } from '../store.ts';
import { Batcher } from './batch.ts';
import { asciiArray, boolArray, byteaArray, float8Array, textArray } from './binary-array.ts';
import type { Pool } from './pool.ts';
import { readRecords } from './reader.ts';
import { compareIds, type Found } from './rows.ts';
import { confirm } from './sql/reserve.ts';
import { settle } from './sql/settle.ts';
import type { StatementError } from './statement-error.ts';
import { type Timeouts, withBytes } from './timeouts.ts';

/** Milliseconds between tries while the store is in trouble. */
const firstPauseMs = 50;
const longestPauseMs = 2_000;
/** After so many each goes alone, if it may be one row that fails them all. */
const triesTogether = 3;

export interface Settlement extends Held {
  readonly to: Extract<State, 'completed' | 'failed_retryable' | 'unknown'>;
  readonly status: number | null;
  readonly answer: StoredAnswer | null;
  readonly error: string | null;
  readonly retentionMs: number | null;
}

interface Item {
  settlement: Settlement;
  /** What the caller asked for; a settlement that the server will not take may end as less. */
  readonly wanted: Settlement['to'];
  readonly resolve: (result: SettleResult) => void;
  /** An earlier try may have been committed: read before sending again. */
  doubtful: boolean;
  /** Its row was locked by somebody: in a batch it would cost its neighbours another wait. */
  alone: boolean;
  tries: number;
  /** Where it stands among the unsettled; -1: it is settled. */
  place: number;
}

/** Completions, releases and doubts in micro-batches, repeated until the store has answered each. */
export class Settler {
  readonly #pool: Pool;
  readonly #timeouts: Timeouts;
  readonly #batcher: Batcher<Item>;
  /** Not a Set, for what the tables that it outgrows would do to memory: see the Lead of reserver.ts. */
  readonly #unsettled: Item[] = [];
  readonly #whenEmpty: (() => void)[] = [];
  #closed = false;

  constructor(pool: Pool, slots: number, timeouts: Timeouts) {
    this.#pool = pool;
    this.#timeouts = timeouts;
    this.#batcher = new Batcher({
      run: (items) => this.#run(items),
      slots,
      maxRows: 256,
      maxBytes: 1_048_576,
      bytesOf,
    });
  }

  get unsettled(): number {
    return this.#unsettled.length;
  }

  settle(settlement: Settlement): Promise<SettleResult> {
    return new Promise((resolve) => {
      if (this.#closed) {
        resolve({ kind: 'unconfirmed', cause: new Error('the store is closed') });
        return;
      }
      const item = {
        settlement,
        wanted: settlement.to,
        resolve,
        doubtful: false,
        alone: false,
        tries: 0,
        place: this.#unsettled.length,
      };
      this.#unsettled.push(item);
      this.#batcher.push(item);
    });
  }

  /** Resolves when every settlement so far has its answer, also those between two tries. */
  async drained(): Promise<void> {
    if (this.#unsettled.length === 0) return;
    await new Promise<void>((resolve) => this.#whenEmpty.push(resolve));
  }

  /** What the store has not answered by now stays for the sweeper. */
  close(): void {
    this.#closed = true;
    // A copy: each that is finished leaves the list.
    for (const item of this.#unsettled.slice()) {
      this.#finish(item, { kind: 'unconfirmed', cause: new Error('the store was closed') });
    }
  }

  async #run(items: readonly Item[]): Promise<void> {
    const sorted = this.#firstOfEach(items);
    if (sorted.length === 0) return;
    try {
      const toSend = sorted.some((item) => item.doubtful) ? await this.#readBack(sorted) : sorted;
      if (toSend.length > 0) await this.#send(toSend);
    } catch (error) {
      this.#afterFailure(sorted, error as StatementError);
    }
  }

  /** Sorted. Of two for one record PostgreSQL would apply either and say so for both: the later one waits its turn. */
  #firstOfEach(items: readonly Item[]): Item[] {
    const sorted = items.filter(isUnsettled);
    sorted.sort((a, b) => compareIds(a.settlement, b.settlement));
    return sorted.filter((item, index) => {
      const before = sorted[index - 1];
      const isFirst = before === undefined || compareIds(before.settlement, item.settlement) !== 0;
      if (!isFirst) this.#batcher.push(item);
      return isFirst;
    });
  }

  async #send(items: readonly Item[]): Promise<void> {
    const bytes = items.reduce((sum, item) => sum + bytesOf(item), 0);
    const rows = await this.#pool.query(
      settle,
      settleValues(items.map((item) => item.settlement)),
      withBytes(this.#timeouts.settleMs, bytes),
    );
    const settled = new Map(rows.map((row) => [row[0] as string, row[1] as number | null]));
    const others: Item[] = [];
    for (const item of items) {
      const retainUntilMs = settled.get(item.settlement.attempt);
      if (retainUntilMs === undefined || item.settlement.to !== item.wanted) others.push(item);
      else this.#finish(item, { kind: 'settled', retainUntilMs });
    }
    if (others.length === 0) return;
    for (const item of others) item.doubtful = true;
    this.#again(await this.#readBack(others));
  }

  /** Settles what can be settled by reading; gives back what still has to be sent. */
  async #readBack(items: readonly Item[]): Promise<Item[]> {
    const settlements = items.map((item) => item.settlement);
    const found = await readRecords(this.#pool, settlements, this.#timeouts.settleMs);
    const written: Item[] = [];
    const toSend: Item[] = [];
    for (const item of items) {
      const record = found.get(idOf(item.settlement))?.record ?? null;
      if (record !== null && isDone(record, item.settlement)) written.push(item);
      else if (record !== null && maySettle(record, item.settlement)) toSend.push(item);
      else this.#finish(item, { kind: 'refused', record });
    }
    if (written.length > 0) await this.#confirm(written, found);
    return toSend;
  }

  /** Visible is not yet durable: only an acknowledged write to the row is. */
  async #confirm(items: readonly Item[], found: Map<string, Found>): Promise<void> {
    const all = items.map((item) => item.settlement);
    const values = [
      byteaArray(all.map((one) => one.scope)),
      textArray(all.map((one) => one.key)),
      textArray(all.map((one) => one.attempt)),
      textArray(all.map((one) => one.to)),
    ];
    const rows = await this.#pool.query(confirm, values, this.#timeouts.settleMs);
    const confirmed = new Map(rows.map((row) => [row[0] as string, row[2] as number | null]));
    const gone: Item[] = [];
    for (const item of items) {
      const retainUntilMs = confirmed.get(item.settlement.attempt);
      if (retainUntilMs === undefined) gone.push(item);
      else if (item.settlement.to === item.wanted) this.#finish(item, { kind: 'settled', retainUntilMs });
      // Asked for an answer to be kept, and none is: the caller must not pass it on as if it were.
      else this.#finish(item, { kind: 'refused', record: found.get(idOf(item.settlement))?.record ?? null });
    }
    this.#again(gone);
  }

  #afterFailure(items: readonly Item[], failure: StatementError): void {
    const left = items.filter(isUnsettled);
    if (failure.concernsOneRow && left.length > 1) {
      // One row's fault must not hold its neighbours: each goes alone.
      for (const item of left) void this.#run([item]);
      return;
    }
    const toRepeat: Item[] = [];
    for (const item of left) {
      if (failure.failure === 'unconfirmed') item.doubtful = true;
      item.alone = failure.concernsOneRow || (item.tries >= triesTogether && failure.mayConcernOneRow);
      const next = failure.isDataFault ? lesser(item.settlement, failure) : item.settlement;
      if (next === null) {
        this.#finish(item, { kind: 'unconfirmed', cause: failure });
        continue;
      }
      item.settlement = next;
      toRepeat.push(item);
    }
    this.#again(toRepeat);
  }

  /** One timer for all: what failed as one batch goes as one batch, not as many statements as it has rows. */
  #again(items: readonly Item[]): void {
    if (items.length === 0) return;
    // Back-off follows the item with the fewest tries: an old failure does not hold up a new one.
    const tries = items.reduce((least, item) => Math.min(least, item.tries), Number.POSITIVE_INFINITY);
    for (const item of items) item.tries += 1;
    setTimeout(
      () => {
        for (const item of items) {
          if (item.alone) void this.#run([item]);
          else this.#batcher.push(item);
        }
      },
      Math.min(firstPauseMs * 2 ** tries, longestPauseMs),
    );
  }

  #finish(item: Item, result: SettleResult): void {
    if (!isUnsettled(item)) return;
    // The last one takes its place.
    const last = this.#unsettled.pop() as Item;
    if (last !== item) this.#unsettled[item.place] = last;
    last.place = item.place;
    item.place = -1;
    item.resolve(result);
    if (this.#unsettled.length > 0) return;
    for (const resolve of this.#whenEmpty.splice(0)) resolve();
  }
}

function isUnsettled({ place }: Item): boolean {
  return place !== -1;
}

function isDone(record: StoredRecord, settlement: Settlement): boolean {
  if (record.attempt !== settlement.attempt || record.state !== settlement.to) return false;
  const { answer } = settlement;
  if (answer === null) return true;
  // An operator may have completed it with another answer: then ours is not what is kept.
  const kept = record.answer;
  return (
    kept !== null &&
    kept.status === answer.status &&
    kept.closeFramed === answer.closeFramed &&
    kept.headers.equals(answer.headers) &&
    sameBytes(kept.body, answer.body)
  );
}

function sameBytes(a: Buffer | null, b: Buffer | null): boolean {
  return a === null || b === null ? a === b : a.equals(b);
}

/** Whether sending it (again) can succeed; the statement's own guard decides in the end. */
function maySettle(record: StoredRecord, settlement: Settlement): boolean {
  return record.attempt === settlement.attempt && sourcesOf(settlement.to, 'attempt').includes(record.state);
}

const notStorable = 'not storable: ';

/**
 * What is left of a settlement that the server will not take as it is. A completion first goes without its body, then
 * it is unknown; a release stays one, without its words. null: not even that; the sweeper will settle the record.
 */
function lesser(settlement: Settlement, failure: StatementError): Settlement | null {
  const { answer } = settlement;
  if (answer !== null && answer.body !== null) return { ...settlement, answer: { ...answer, body: null } };
  if (settlement.error?.startsWith(notStorable)) return null;
  const bare = { ...settlement, status: null, answer: null, error: `${notStorable}${failure.sqlState}` };
  return settlement.to === 'completed' ? { ...bare, to: 'unknown', retentionMs: null } : bare;
}

function bytesOf({ settlement: { answer } }: Item): number {
  return 200 + (answer === null ? 0 : answer.headers.length + (answer.body?.length ?? 0));
}

export function settleValues(all: readonly Settlement[]): unknown[] {
  return [
    byteaArray(all.map((one) => one.scope)),
    asciiArray(all.map((one) => one.key)),
    asciiArray(all.map((one) => one.attempt)),
    asciiArray(all.map((one) => one.to)),
    float8Array(all.map((one) => one.status)),
    byteaArray(all.map((one) => one.answer?.headers ?? null)),
    byteaArray(all.map((one) => one.answer?.body ?? null)),
    boolArray(all.map((one) => one.answer?.closeFramed ?? false)),
    textArray(all.map((one) => one.error)),
    float8Array(all.map((one) => one.retentionMs)),
  ];
}
