import type { RecordId, State } from '../../src/core/record.ts';

/** A row of oncegate.record. Never changed in place: each change makes a new one. Times are by the server's clock. */
export interface Row extends RecordId {
  readonly id: string;
  readonly attempt: string;
  readonly epoch: number;
  readonly instance: string;
  readonly state: State;
  readonly hadCredentials: boolean;
  readonly digest: Buffer;
  readonly raw: Buffer;
  readonly rule: string;
  readonly deadlineMs: number;
  readonly reservedMs: number;
  readonly tenant: string | null;
  readonly method: string;
  readonly path: string;
  readonly requestId: string;
  /** null: it does not mark. */
  readonly dispatched: boolean | null;
  readonly status: number | null;
  readonly headers: Buffer | null;
  readonly body: Buffer | null;
  readonly closeFramed: boolean;
  readonly completedMs: number | null;
  readonly retainUntilMs: number | null;
  /** Purged: nobody takes it over before. */
  readonly blockedUntilMs: number | null;
}

/** What of a row is erased when somebody takes it over. */
export const unanswered = {
  status: null,
  headers: null,
  body: null,
  closeFramed: false,
  completedMs: null,
  retainUntilMs: null,
  blockedUntilMs: null,
} as const;

/** Larger bodies are read one by one, as in sql/read.ts. */
const inlineBodyBytes = 65_536;

/** The columns of sql/read.ts. */
export function readColumns(row: Row, at: { nowMs: number; whole: boolean }): unknown[] {
  const { body, retainUntilMs, blockedUntilMs } = row;
  return [
    row.scope,
    row.key,
    row.attempt,
    String(row.epoch),
    row.state,
    row.hadCredentials,
    row.digest,
    row.raw,
    row.rule,
    retainUntilMs !== null && retainUntilMs <= at.nowMs,
    retainUntilMs,
    retainUntilMs === null ? null : retainUntilMs - at.nowMs,
    blockedUntilMs !== null && blockedUntilMs > at.nowMs,
    row.status,
    row.closeFramed,
    row.headers,
    body !== null && (at.whole || body.length <= inlineBodyBytes) ? body : null,
    body?.length ?? null,
    null,
  ];
}
