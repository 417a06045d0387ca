import type { RecordId, State, StoredAnswer, StoredRecord } from '../../core/record.ts';
import type { Reservation } from '../store.ts';

/** The columns of sql/read.ts, in order. */
type ReadRow = readonly [
  scope: Buffer,
  key: string,
  attempt: string,
  epoch: string,
  state: State,
  hadCredentials: boolean,
  fingerprint: Buffer,
  rawDigest: Buffer,
  fingerprintRule: string,
  expired: boolean,
  retainUntilMs: number | null,
  retainForMs: number | null,
  blocked: boolean,
  status: number | null,
  closeFramed: boolean,
  headers: Buffer | null,
  body: Buffer | null,
  bodyBytes: number | null,
  acknowledged: string | null,
];

/** Batches of several instances lock rows in one order, so they cannot deadlock. */
export function compareIds(a: RecordId, b: RecordId): number {
  return a.scope.compare(b.scope) || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
}

/** `retainForMs`: what was left of its retention. */
export interface Found {
  readonly record: StoredRecord;
  readonly retainForMs: number | null;
}

export interface ReadRecord extends RecordId, Found {
  /** Length of a body that is there but was too large to come along. */
  readonly leftBehindBytes: number | null;
}

export function parseRead(row: readonly unknown[]): ReadRecord {
  const [
    scope,
    key,
    attempt,
    epoch,
    state,
    hadCredentials,
    digest,
    raw,
    rule,
    expired,
    retainUntilMs,
    retainForMs,
    ...rest
  ] = row as ReadRow;
  const [blocked, status, closeFramed, headers, body, bodyBytes] = rest;
  let answer: StoredAnswer | null = null;
  if (state === 'completed' && status !== null && headers !== null)
    answer = { status, headers, body, closeFramed };
  const record = {
    attempt,
    epoch,
    state,
    fingerprint: { rule, digest, raw },
    hadCredentials,
    expired,
    retainUntilMs,
    blocked,
    answer,
  };
  return { scope, key, record, retainForMs, leftBehindBytes: body === null ? bodyBytes : null };
}

/** A reservation that just became a record, for callers that asked for the same key at the same moment. */
export function recordOf(reservation: Reservation, epoch: string): StoredRecord {
  return {
    attempt: reservation.attempt,
    epoch,
    state: 'in_progress',
    fingerprint: reservation.fingerprint,
    hadCredentials: reservation.hadCredentials,
    expired: false,
    retainUntilMs: null,
    blocked: false,
    answer: null,
  };
}
