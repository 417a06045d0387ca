import { randomUUID } from 'node:crypto';
import { idOf, type RecordId, type State, type StoredAnswer, waitingStates } from '../../core/record.ts';
import type {
  ChangeResult,
  Decision,
  Given,
  History,
  Listing,
  OperatorStore,
  RecordView,
  Search,
  Seen,
} from '../operator.ts';
import { available } from './available.ts';
import { byteaArray, textArray } from './binary-array.ts';
import { parseAudit, parseLate, parseView } from './operator-rows.ts';
import { Pool, type Rows } from './pool.ts';
import { readRecords } from './reader.ts';
import {
  findAuditLine,
  operatorComplete,
  operatorPurge,
  operatorRelease,
  readAudit,
  readLateAnswers,
} from './sql/operator.ts';
import {
  countRoughly,
  findAnywhere,
  findNamed,
  identity,
  listRunning,
  listSettled,
  listWaiting,
  viewAt,
} from './sql/operator-look.ts';
import { confirm } from './sql/reserve.ts';
import type { Statement } from './sql/statement.ts';
import type { StatementError } from './statement-error.ts';
import { defaultTimeouts, type Timeouts, withBytes } from './timeouts.ts';

export interface OperatorOptions {
  readonly url: string;
  readonly durability: 'strict' | 'relaxed';
  readonly timeouts?: Partial<Timeouts>;
}

/** Milliseconds for a look at the whole table: minutes on one of many millions. */
const wholeTableMs = 300_000;
/** The first, and one more after a read-back showed nothing of it. */
const maxTries = 2;

/** For a person at a terminal: one statement at a time, and an honest word on each. */
export class PostgresOperator implements OperatorStore {
  readonly #pool: Pool;
  readonly #timeouts: Timeouts;

  constructor({ url, durability, timeouts }: OperatorOptions) {
    this.#timeouts = { ...defaultTimeouts, ...timeouts };
    const { connectMs } = this.#timeouts;
    this.#pool = new Pool({ url, durability, connectMs, name: 'oncegate keys', size: 1, plans: 'made_anew' });
  }

  async list({ states, olderThanMs, tenant, path, limit }: Listing): Promise<readonly RecordView[]> {
    const what = listingOf(states);
    const rows = await this.#look(what, [textArray(states), olderThanMs, tenant, path, limit]);
    return rows.map(parseView);
  }

  async find(search: Search): Promise<readonly RecordView[]> {
    return (await this.#look(findNamed, searchValues(search))).map(parseView);
  }

  async findAnywhere(search: Search): Promise<readonly RecordView[]> {
    return (await this.#look(findAnywhere, searchValues(search), wholeTableMs)).map(parseView);
  }

  async countRoughly(): Promise<number> {
    const [row] = await this.#look(countRoughly, []);
    return Math.max(0, (row?.[0] as number | undefined) ?? 0);
  }

  async at({ scope, key }: RecordId): Promise<RecordView | null> {
    const [row] = await this.#look(viewAt, [scope, key]);
    return row === undefined ? null : parseView(row);
  }

  async history({ scope, key }: RecordId): Promise<History> {
    const audit = (await this.#look(readAudit, [scope, key])).map(parseAudit);
    const lateAnswers = (await this.#look(readLateAnswers, [scope, key])).map(parseLate);
    return { audit, lateAnswers };
  }

  async answerAt(id: RecordId): Promise<StoredAnswer | null> {
    const found = await available(readRecords(this.#pool, [id], this.#timeouts.loopMs));
    return found.get(idOf(id))?.record.answer ?? null;
  }

  async identity(): Promise<string | null> {
    const [row] = await this.#look(identity, []);
    return (row?.[0] as string | undefined) ?? null;
  }

  completeIfUnchanged(seen: Seen, by: Decision, { answer, retentionMs }: Given): Promise<ChangeResult> {
    const { status, headers, body } = answer;
    return this.#change(operatorComplete, seen, by, [status, headers, body, retentionMs]);
  }

  releaseIfUnchanged(seen: Seen, by: Decision, retentionMs: number): Promise<ChangeResult> {
    return this.#change(operatorRelease, seen, by, [retentionMs]);
  }

  purgeIfUnchanged(seen: Seen, by: Decision): Promise<ChangeResult> {
    return this.#change(operatorPurge, seen, by, []);
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  async #change(what: Statement, seen: Seen, by: Decision, more: unknown[]): Promise<ChangeResult> {
    const { scope, key, attempt, epoch, state } = seen;
    const line = randomUUID();
    const values = [scope, key, attempt, epoch, state, line, by.actor, by.reason, ...more];
    const bytes = more.reduce((sum: number, one) => sum + (Buffer.isBuffer(one) ? one.length : 0), 0);
    const timeoutMs = withBytes(this.#timeouts.settleMs, bytes);
    let doubt: Error | null = null;
    for (let tries = 1; tries <= maxTries; tries += 1) {
      try {
        const rows = await this.#pool.query(what, values, timeoutMs);
        if (rows.length === 1) return { kind: 'done', record: await this.#at(seen) };
        return await this.#readBack(seen, line);
      } catch (error) {
        const failure = error as StatementError;
        // An earlier one may still be on its way, and even hold the row that this one waited for.
        if (failure.failure !== 'unconfirmed') {
          return doubt === null
            ? { kind: 'not_done', cause: failure }
            : { kind: 'unconfirmed', cause: doubt };
        }
        doubt = failure;
      }
      // Absent: the same statement again is safe, for whichever comes second finds the guard gone.
      const now = await this.#readBack(seen, line);
      if (now.kind !== 'refused' || !isAsSeen(now.record, seen)) return now;
    }
    return { kind: 'unconfirmed', cause: doubt as Error };
  }

  /**
   * The record first, then our line: both change in one commit, so a record that has moved without our line was moved by
   * somebody else. Visible is not yet durable: only after an acknowledged write to the record is it done.
   */
  async #readBack(seen: Seen, line: string): Promise<ChangeResult> {
    const { settleMs } = this.#timeouts;
    try {
      const record = await this.at(seen);
      const lines = await this.#pool.query(findAuditLine, [seen.scope, seen.key, line], settleMs);
      if (lines.length === 0) return { kind: 'refused', record };
      const now = record === null || !isAsSeen(record, seen) ? record : await this.at(seen);
      const confirmed = now === null ? [] : await this.#pool.query(confirm, confirmValues(now), settleMs);
      if (confirmed.length === 1) return { kind: 'done', record: now };
      return { kind: 'unconfirmed', cause: new Error('the record moved on while it was looked at') };
    } catch (error) {
      return { kind: 'unconfirmed', cause: error as Error };
    }
  }

  /** After the fact, to be told: not being able to look does not undo it. */
  async #at(id: RecordId): Promise<RecordView | null> {
    return await this.at(id).catch(() => null);
  }

  #look(what: Statement, values: unknown[], timeoutMs = this.#timeouts.loopMs): Promise<Rows> {
    return available(this.#pool.query(what, values, timeoutMs));
  }
}

function listingOf(states: readonly State[]): Statement {
  if (states.includes('in_progress')) return listRunning;
  return waitingStates.some((state) => states.includes(state)) ? listWaiting : listSettled;
}

function searchValues({ hashPrefix, key, tenant, path, method, limit }: Search): unknown[] {
  return [hashPrefix, key, tenant, path, method, limit];
}

function isAsSeen(record: RecordView | null, { attempt, epoch, state }: Seen): boolean {
  return record?.attempt === attempt && record.epoch === epoch && record.state === state;
}

function confirmValues({ scope, key, attempt, state }: RecordView): unknown[] {
  return [byteaArray([scope]), textArray([key]), textArray([attempt]), textArray([state])];
}
