import type { Fingerprint, RecordId, State, StoredAnswer, StoredRecord } from '../../core/record.ts';
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

/**
 * The column `fingerprint_rule`: the id of the rule; behind spaces that of the list of headers and their digest, where headers
 * count. One column, so that a version that knows no such headers never takes a key over and leaves the digest of another request.
 */
export function ruleText({ rule, headers }: Fingerprint): string {
  return headers === null ? rule : `${rule} ${headers.list} ${headers.digest}`;
}

function parseRule(text: string): Pick<Fingerprint, 'rule' | 'headers'> {
  const [rule = '', list, digest] = text.split(' ');
  return { rule, headers: list === undefined || digest === undefined ? null : { list, digest } };
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
    fingerprint: { digest, raw, ...parseRule(rule) },
    hadCredentials,
    expired,
    retainUntilMs,
    blocked,
    status,
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
    status: null,
    answer: null,
  };
}
