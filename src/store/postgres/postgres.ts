import { idOf, type RecordId, type StoredRecord } from '../../core/record.ts';
import { failpoint } from '../../failpoint.ts';
import type {
  Census,
  Completion,
  Doubt,
  Held,
  LateAnswer,
  MarkResult,
  Release,
  Reservation,
  ReserveResult,
  SettleResult,
  Store,
  Swept,
} from '../store.ts';
import { available } from './available.ts';
import { byteaArray, textArray } from './binary-array.ts';
import { Marker } from './marker.ts';
import { Pool, type Rows } from './pool.ts';
import { readRecords } from './reader.ts';
import { Reserver } from './reserver.ts';
import { compareIds } from './rows.ts';
import { Settler } from './settler.ts';
import { takeCensus } from './sql/census.ts';
import { ping } from './sql/connection.ts';
import { keepLateAnswer, reapLateAnswers } from './sql/late-answer.ts';
import { closeLease, openLease, renewLease } from './sql/lease.ts';
import {
  findReapable,
  findSweepable,
  listInProgress,
  reap,
  reapInstances,
  releaseNeverSent,
  releaseUndispatched,
  sweep,
} from './sql/loops.ts';
import type { Statement } from './sql/statement.ts';
import { StatementError } from './statement-error.ts';
import { defaultTimeouts, type Timeouts, withBytes } from './timeouts.ts';

export interface PostgresOptions {
  readonly url: string;
  /** Connections in all; opened as they are needed. */
  readonly poolSize: number;
  readonly durability: 'strict' | 'relaxed';
  readonly timeouts?: Partial<Timeouts>;
}

/** One statement in flight while the next batch fills: more slots would make smaller batches and more commits. */
const reserveSlots = 1;
const settleSlots = 1;
/** Two for settling, so that a row that goes alone does not stop the next batch. */
const settleConnections = 2;
/** Of its own: a slow pass must never delay a renewal. */
const leaseConnections = 1;
/** For the sweeper, the reaper and the census: one that is slow leaves room for another. */
const loopConnections = 2;

/** In the order of sql/census.ts. */
type CensusRow = readonly [
  inProgress: number,
  overdue: number,
  unknown: number,
  deadLetter: number,
  oldestWaitingMs: number | null,
  lateAnswers: number,
];

export class PostgresStore implements Store {
  readonly #front: Pool;
  readonly #settling: Pool;
  readonly #leases: Pool;
  readonly #loops: Pool;
  readonly #reserver: Reserver;
  readonly #marker: Marker;
  readonly #settler: Settler;
  readonly #timeouts: Timeouts;
  #closing: Promise<void> | null = null;

  constructor({ url, poolSize, durability, timeouts }: PostgresOptions) {
    this.#timeouts = { ...defaultTimeouts, ...timeouts };
    const { connectMs } = this.#timeouts;
    const frontConnections = Math.max(1, poolSize - settleConnections - leaseConnections - loopConnections);
    const pool = (name: string, size: number, plans: 'kept' | 'made_anew') =>
      new Pool({ url, durability, connectMs, name, size, plans });
    this.#front = pool('oncegate reserve', frontConnections, 'kept');
    this.#settling = pool('oncegate settle', settleConnections, 'kept');
    this.#leases = pool('oncegate lease', leaseConnections, 'kept');
    // What a pass looks for may be nothing or half of the table.
    this.#loops = pool('oncegate loops', loopConnections, 'made_anew');
    this.#reserver = new Reserver(this.#front, reserveSlots, this.#timeouts);
    this.#marker = new Marker(this.#front, reserveSlots, this.#timeouts.reserveMs);
    this.#settler = new Settler(this.#settling, settleSlots, this.#timeouts);
  }

  /** Settlements that the store has not answered yet. */
  get unsettled(): number {
    return this.#settler.unsettled;
  }

  /** The server has not answered lately: reservations are refused at once, until one gets through. */
  get isRefusing(): boolean {
    return this.#reserver.isRefusing;
  }

  reserve(reservation: Reservation): Promise<ReserveResult> {
    return this.#reserver.reserve(reservation);
  }

  takeOverIfUnchanged(previous: StoredRecord, reservation: Reservation): Promise<ReserveResult> {
    return this.#reserver.takeOver(previous, reservation);
  }

  markDispatchedIfHeld(held: Held): Promise<MarkResult> {
    return this.#marker.mark(held);
  }

  completeIfHeld({ scope, key, attempt, answer, retentionMs }: Completion): Promise<SettleResult> {
    const { status } = answer;
    return this.#settler.settle({
      scope,
      key,
      attempt,
      to: 'completed',
      status,
      answer,
      error: null,
      retentionMs,
    });
  }

  releaseIfHeld({ scope, key, attempt, status, error, retentionMs }: Release): Promise<SettleResult> {
    const to = 'failed_retryable';
    return this.#settler.settle({ scope, key, attempt, to, status, answer: null, error, retentionMs });
  }

  markUnknownIfHeld({ scope, key, attempt, status, error }: Doubt): Promise<SettleResult> {
    const to = 'unknown';
    return this.#settler.settle({ scope, key, attempt, to, status, answer: null, error, retentionMs: null });
  }

  async keepLateAnswer({ scope, key, attempt, ...late }: LateAnswer): Promise<void> {
    const { requestId, outcome, status, answer } = late;
    const values = [
      scope,
      key,
      attempt,
      requestId,
      outcome,
      status,
      answer?.headers ?? null,
      answer?.body ?? null,
    ];
    const timeoutMs = withBytes(this.#timeouts.settleMs, answer?.body?.length ?? 0);
    await available(this.#settling.query(keepLateAnswer, values, timeoutMs));
  }

  async read(ids: readonly RecordId[]): Promise<readonly (StoredRecord | null)[]> {
    const found = await available(readRecords(this.#front, ids, this.#timeouts.loopMs));
    return ids.map((id) => found.get(idOf(id))?.record ?? null);
  }

  async openLease(instance: string, forMs: number): Promise<void> {
    await available(this.#leases.query(openLease, [instance, forMs], this.#timeouts.leaseMs));
  }

  async renewLease(instance: string, forMs: number): Promise<boolean> {
    const rows = await available(this.#leases.query(renewLease, [instance, forMs], this.#timeouts.leaseMs));
    return rows.length === 1;
  }

  async closeLease(instance: string): Promise<void> {
    await available(this.#leases.query(closeLease, [instance], this.#timeouts.leaseMs));
  }

  async sweep(limit: number): Promise<readonly Swept[]> {
    const found = (await this.#pass(findSweepable, [limit])).map(
      ([scope, key, attempt, method, path, requestId, reason, to]) =>
        ({ scope, key, attempt, method, path, requestId, reason, to }) as Swept,
    );
    found.sort(compareIds);
    if (found.length > 0) failpoint('sweep_found');
    const swept = new Set<unknown>();
    for (const [to, statement] of [
      ['unknown', sweep] as const,
      ['failed_retryable', releaseUndispatched] as const,
    ]) {
      const some = found.filter((one) => one.to === to);
      if (some.length === 0) continue;
      const values = (rows: readonly Swept[]) => [
        ...heldArrays(rows),
        textArray(rows.map((one) => one.reason)),
      ];
      for (const [attempt] of await this.#passOver(some, statement, values)) swept.add(attempt);
    }
    return found.filter((one) => swept.has(one.attempt));
  }

  async listInProgress(instance: string, limit: number): Promise<readonly Held[]> {
    const rows = await this.#pass(listInProgress, [instance, limit]);
    return rows.map(([scope, key, attempt]) => ({ scope, key, attempt }) as Held);
  }

  async releaseIfNeverSent(instance: string, held: readonly Held[]): Promise<number> {
    const rows = await this.#passOver(held.toSorted(compareIds), releaseNeverSent, (some) => [
      ...heldArrays(some),
      textArray(some.map(() => instance)),
    ]);
    return rows.length;
  }

  async reap(limit: number): Promise<number> {
    const rows = await this.#pass(findReapable, [limit]);
    const found = rows.map(([scope, key, attempt]) => ({ scope, key, attempt }) as Held).sort(compareIds);
    if (found.length > 0) failpoint('reap_found');
    const reaped = found.length === 0 ? 0 : (await this.#passOver(found, reap, heldArrays)).length;
    // A full pass is followed by another at once: these few can wait for the last.
    if (reaped === limit) return reaped;
    await this.#pass(reapInstances, []);
    await this.#pass(reapLateAnswers, []);
    return reaped;
  }

  async census(): Promise<Census> {
    const [row] = await this.#pass(takeCensus, []);
    const [inProgress, overdue, unknown, deadLetter, oldestWaitingMs, lateAnswers] = row as CensusRow;
    return { inProgress, overdue, unknown, deadLetter, oldestWaitingMs, lateAnswers };
  }

  async check(): Promise<void> {
    await available(this.#front.query(ping, [], this.#timeouts.leaseMs));
  }

  close(graceMs: number): Promise<void> {
    this.#closing ??= this.#close(graceMs);
    return this.#closing;
  }

  async #close(graceMs: number): Promise<void> {
    const grace = new Promise((resolve) => setTimeout(resolve, graceMs).unref());
    await Promise.race([this.#settler.drained(), grace]);
    this.#settler.close();
    const pools = [this.#front, this.#settling, this.#leases, this.#loops];
    const ended = Promise.all(pools.map((pool) => pool.end()));
    await Promise.race([ended, grace]);
    for (const pool of pools) pool.cut();
    await ended;
  }

  #pass(what: Statement, values: unknown[]): Promise<Rows> {
    return available(this.#loops.query(what, values, this.#timeouts.loopMs));
  }

  /** A row that somebody has locked must not keep a whole pass from its work: then each goes alone. */
  async #passOver<Row>(
    all: readonly Row[],
    what: Statement,
    valuesOf: (some: readonly Row[]) => unknown[],
  ): Promise<Rows> {
    try {
      return await this.#pass(what, valuesOf(all));
    } catch (error) {
      if (!isAboutOneRow(error)) throw error;
    }
    const rows: Rows[number][] = [];
    for (const one of all) {
      try {
        rows.push(...(await this.#pass(what, valuesOf([one]))));
      } catch (error) {
        // Left for the next pass.
        if (!isAboutOneRow(error)) throw error;
      }
    }
    return rows;
  }
}

function isAboutOneRow(error: unknown): boolean {
  const { cause } = error as Error;
  return cause instanceof StatementError && cause.concernsOneRow;
}

/** Callers sort them, so that passes of several instances cannot deadlock with each other or with a batch. */
function heldArrays(held: readonly Held[]): unknown[] {
  return [
    byteaArray(held.map((one) => one.scope)),
    textArray(held.map((one) => one.key)),
    textArray(held.map((one) => one.attempt)),
  ];
}
