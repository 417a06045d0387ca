import { idOf, type RecordId, type StoredRecord } from '../../core/record.ts';
import { failpoint } from '../../failpoint.ts';
import type {
  BrokenAnswer,
  Census,
  Completion,
  Doubt,
  Held,
  LateAnswer,
  MarkResult,
  NeverSent,
  NeverSentResult,
  Release,
  Reservation,
  ReserveResult,
  SettleResult,
  Store,
  Swept,
} from '../store.ts';
import { available } from './available.ts';
import { byteaArray, textArray } from './binary-array.ts';
import { Front } from './front.ts';
import { identityAccepted } from './identity.ts';
import { Marker } from './marker.ts';
import { Pool, type Rows } from './pool.ts';
import { readRecords } from './reader.ts';
import { Reserver } from './reserver.ts';
import { compareIds } from './rows.ts';
import { Settler } from './settler.ts';
import { takeCensus } from './sql/census.ts';
import { ping } from './sql/connection.ts';
import { keepLateAnswer, noteBrokenAnswer, reapLateAnswers } from './sql/late-answer.ts';
import { closeLease, openLease, renewLease } from './sql/lease.ts';
import {
  findReapable,
  findSweepable,
  reap,
  reapInstances,
  releaseNeverSent,
  releaseUndispatched,
  sweep,
} from './sql/loops.ts';
import type { Statement } from './sql/statement.ts';
import { StatementError } from './statement-error.ts';
import { Taker } from './taker.ts';
import { defaultTimeouts, type Timeouts, withBytes } from './timeouts.ts';
import { untilTaken } from './until-taken.ts';

export interface PostgresOptions {
  readonly url: string;
  /** Connections in all; opened as they are needed. */
  readonly poolSize: number;
  readonly durability: 'strict' | 'relaxed';
  /** What no lease is opened without: the settings that make a key unique. Absent: not compared. */
  readonly identity?: string;
  readonly timeouts?: Partial<Timeouts>;
}

/** One statement in flight while the next batch fills: more slots would make smaller batches and more commits. */
const reserveSlots = 1;
const takeOverSlots = 1;
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
  /** Of the same pool. */
  readonly #gate: Front;
  readonly #reserver: Reserver;
  readonly #taker: Taker;
  readonly #marker: Marker;
  readonly #settler: Settler;
  readonly #timeouts: Timeouts;
  readonly #identity: string | null;
  #closing: Promise<void> | null = null;

  constructor({ url, poolSize, durability, identity, timeouts }: PostgresOptions) {
    this.#identity = identity ?? null;
    this.#timeouts = { ...defaultTimeouts, ...timeouts };
    const { connectMs, reserveMs, queueMs } = this.#timeouts;
    const frontConnections = Math.max(1, poolSize - settleConnections - leaseConnections - loopConnections);
    const pool = (name: string, size: number, plans: 'kept' | 'made_anew') =>
      new Pool({ url, durability, connectMs, name, size, plans });
    this.#front = pool('oncegate reserve', frontConnections, 'kept');
    this.#settling = pool('oncegate settle', settleConnections, 'kept');
    this.#leases = pool('oncegate lease', leaseConnections, 'kept');
    // What a pass looks for may be nothing or half of the table.
    this.#loops = pool('oncegate loops', loopConnections, 'made_anew');
    this.#gate = new Front(this.#front, reserveMs);
    this.#reserver = new Reserver(this.#gate, reserveSlots, queueMs);
    this.#taker = new Taker(this.#gate, takeOverSlots, queueMs);
    this.#marker = new Marker(this.#front, reserveSlots, reserveMs);
    this.#settler = new Settler(this.#settling, settleSlots, this.#timeouts);
  }

  /** Settlements that the store has not answered yet. */
  get unsettled(): number {
    return this.#settler.unsettled;
  }

  /** The server has not answered lately: reservations are refused at once, until one gets through. */
  get isRefusing(): boolean {
    return !this.#gate.admits;
  }

  reserve(reservation: Reservation): Promise<ReserveResult> {
    return this.#reserver.reserve(reservation);
  }

  takeOverIfUnchanged(previous: StoredRecord, reservation: Reservation): Promise<ReserveResult> {
    return this.#taker.takeOver(previous, reservation);
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

  async noteBrokenAnswerIfHeld({ scope, key, attempt, error }: BrokenAnswer): Promise<void> {
    const values = [scope, key, attempt, error];
    const note = () => this.#settling.query(noteBrokenAnswer, values, this.#timeouts.settleMs);
    await available(untilTaken(note, () => this.#closing !== null));
  }

  async read(ids: readonly RecordId[]): Promise<readonly (StoredRecord | null)[]> {
    const found = await available(readRecords(this.#front, ids, this.#timeouts.loopMs));
    return ids.map((id) => found.get(idOf(id))?.record ?? null);
  }

  async openLease(instance: string, forMs: number): Promise<void> {
    const values = [instance, forMs, this.#identity];
    const rows = await available(this.#leases.query(openLease, values, this.#timeouts.leaseMs));
    if (rows.length === 0) throw identityAccepted();
  }

  async renewLease(instance: string, forMs: number): Promise<boolean> {
    const rows = await available(this.#leases.query(renewLease, [instance, forMs], this.#timeouts.leaseMs));
    return rows.length === 1;
  }

  async closeLease(instance: string): Promise<void> {
    await available(this.#leases.query(closeLease, [instance], this.#timeouts.leaseMs));
  }

  async sweep(limit: number, leasesCount = () => true): Promise<readonly Swept[]> {
    const rows = await this.#pass(findSweepable, [limit]);
    // Only now: the statement may have hung through an outage, and found leases that nobody could renew. What is past its deadline
    // comes first, so the limit leaves none of it out.
    const doLeasesCount = leasesCount();
    const found = rows.flatMap(
      ([scope, key, attempt, method, path, requestId, instance, isOverdue, isLeaseOver, to]) => {
        // Both hold for what a killed instance left long ago; then it is the lease that says what happened.
        const reason = doLeasesCount && isLeaseOver ? 'lease_over' : 'deadline_passed';
        if (reason === 'deadline_passed' && !isOverdue) return [];
        return [{ scope, key, attempt, method, path, requestId, instance, reason, to } as Swept];
      },
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

  async releaseIfNeverSent(given: readonly NeverSent[]): Promise<readonly NeverSentResult[]> {
    const locked = new Set<string>();
    const rows = await this.#passOver(
      given.toSorted(compareIds),
      releaseNeverSent,
      (some) => [...heldArrays(some), textArray(some.map((one) => one.instance))],
      ({ attempt }) => locked.add(attempt),
    );
    const released = new Set(rows.map(([attempt]) => attempt));
    return given.map(({ attempt }) =>
      released.has(attempt) ? 'released' : locked.has(attempt) ? 'locked' : 'not_held',
    );
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

  /** A row that somebody has locked, or that the server never takes, must not keep a whole pass from its work: then each goes alone. */
  async #passOver<Row>(
    all: readonly Row[],
    what: Statement,
    valuesOf: (some: readonly Row[]) => unknown[],
    onLeft: (one: Row) => void = () => {},
  ): Promise<Rows> {
    try {
      return await this.#pass(what, valuesOf(all));
    } catch (error) {
      if (!mayConcernOneRow(error)) throw error;
    }
    const rows: Rows[number][] = [];
    for (const one of all) {
      try {
        rows.push(...(await this.#pass(what, valuesOf([one]))));
      } catch (error) {
        if (!mayConcernOneRow(error)) throw error;
        // Left for the next pass.
        onLeft(one);
      }
    }
    return rows;
  }
}

function mayConcernOneRow(error: unknown): boolean {
  const { cause } = error as Error;
  return cause instanceof StatementError && cause.mayConcernOneRow;
}

/** Callers sort them, so that passes of several instances cannot deadlock with each other or with a batch. */
function heldArrays(held: readonly Held[]): unknown[] {
  return [
    byteaArray(held.map((one) => one.scope)),
    textArray(held.map((one) => one.key)),
    textArray(held.map((one) => one.attempt)),
  ];
}
