import { hash } from 'node:crypto';

/** The states of a record and who may move it. SQL's enum, the docs' diagram and this table are compared by a test. */
export const states = ['in_progress', 'completed', 'failed_retryable', 'unknown', 'dead_letter'] as const;
export type State = (typeof states)[number];

/** `attempt`: the attempt that holds the record, also late. `retry`: another request with the same key. */
export type Actor = 'attempt' | 'sweeper' | 'retry' | 'reconciler' | 'operator';

export interface Move {
  readonly from: State;
  readonly to: State;
  readonly by: readonly Actor[];
}

/** Every legal move; what is not here is refused by the store's guards. No retry ever leaves `unknown` or `dead_letter`. */
export const moves: readonly Move[] = [
  { from: 'in_progress', to: 'completed', by: ['attempt'] },
  // The sweeper: what this instance reserved and provably never sent.
  { from: 'in_progress', to: 'failed_retryable', by: ['attempt', 'sweeper'] },
  { from: 'in_progress', to: 'unknown', by: ['attempt', 'sweeper'] },
  { from: 'failed_retryable', to: 'in_progress', by: ['retry'] },
  { from: 'failed_retryable', to: 'completed', by: ['attempt'] },
  // Only once past retention: until then a completed record is final.
  { from: 'completed', to: 'in_progress', by: ['retry'] },
  // A purge: the answer is erased, and the key stays blocked for a while.
  { from: 'completed', to: 'failed_retryable', by: ['operator'] },
  { from: 'unknown', to: 'completed', by: ['attempt', 'reconciler', 'operator'] },
  { from: 'unknown', to: 'failed_retryable', by: ['attempt', 'reconciler', 'operator'] },
  { from: 'unknown', to: 'dead_letter', by: ['reconciler'] },
  { from: 'dead_letter', to: 'completed', by: ['attempt', 'reconciler', 'operator'] },
  { from: 'dead_letter', to: 'failed_retryable', by: ['attempt', 'reconciler', 'operator'] },
];

/** Nobody knows whether these ran: they wait for a person, a reconciler, or their own late answer. */
export const waitingStates = ['unknown', 'dead_letter'] as const satisfies readonly State[];

/** States from which `actor` may move a record to `to`. */
export function sourcesOf(to: State, actor: Actor): readonly State[] {
  return moves.filter((move) => move.to === to && move.by.includes(actor)).map((move) => move.from);
}

/** Where a record lives: always addressed by both, then compared by attempt. */
export interface RecordId {
  /** SHA-256 over the length-prefixed scope parts. */
  readonly scope: Buffer;
  readonly key: string;
}

/** One string per record, for maps: the scope has a fixed length, so nothing can be confused. */
export function idOf(id: RecordId): string {
  return id.scope.toString('latin1') + id.key;
}

/** Names a record to people, in logs and on the command line, without showing its key. The SQL of the operator makes the same. */
export function hashOf(id: RecordId): string {
  // A key is ASCII: one byte a letter.
  return hash('sha256', Buffer.from(idOf(id), 'latin1'), 'hex');
}

/** What makes two requests "the same". See core/fingerprint.ts. */
export interface Fingerprint {
  /** Names the rule that made `digest`; digests of different rules are not comparable. */
  readonly rule: string;
  readonly digest: Buffer;
  /** Digest over the raw bytes: equal means identical whatever the rule. */
  readonly raw: Buffer;
  /** null: no header counts beside those that are in both digests. */
  readonly headers: HeaderDigest | null;
}

/** Of the headers that the config adds to a fingerprint. See core/fingerprint-headers.ts. */
export interface HeaderDigest {
  /** Names the list of headers; digests of different lists are not comparable. Hexadecimal, as is the next. */
  readonly list: string;
  readonly digest: string;
}

/** An upstream's answer as it is kept. */
export interface StoredAnswer {
  readonly status: number;
  /** Encoded by core/response.ts; only what is safe to repeat. */
  readonly headers: Buffer;
  /** null: too large to keep; retries get 409 `response_not_retained`. */
  readonly body: Buffer | null;
  /** The upstream framed the body only by closing: nobody can know whether it was cut. */
  readonly closeFramed: boolean;
}

export interface StoredRecord {
  readonly attempt: string;
  /** Decimal digits of a bigint; only ever compared inside SQL. */
  readonly epoch: string;
  readonly state: State;
  readonly fingerprint: Fingerprint;
  readonly hadCredentials: boolean;
  /** `retain_until` has passed by the database's clock. */
  readonly expired: boolean;
  readonly retainUntilMs: number | null;
  /** Purged a moment ago: another replica may still replay the old answer, so nothing may run yet. */
  readonly blocked: boolean;
  /** Of the answer that settled it, also where that is not kept; null: there was none. */
  readonly status: number | null;
  /** Present exactly in `completed`. */
  readonly answer: StoredAnswer | null;
}
