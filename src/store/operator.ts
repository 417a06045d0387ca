import type { RecordId, State, StoredAnswer } from '../core/record.ts';
import type { LateAnswer } from './store.ts';

/**
 * What a person may see and settle. Apart from THE INTERFACE, for no request ever needs it.
 * Looks reject with `store_unavailable`. Times are milliseconds by the database's clock.
 */
export interface RecordView extends RecordId {
  readonly attempt: string;
  /** Decimal digits of a bigint; only ever compared inside SQL. */
  readonly epoch: string;
  readonly state: State;
  readonly method: string;
  readonly path: string;
  readonly tenant: string | null;
  readonly requestId: string;
  /** What the upstream answered, or had begun to answer. */
  readonly status: number | null;
  readonly lastError: string | null;
  readonly hadCredentials: boolean;
  /** null: it did not tell before sending, so it may have been sent. */
  readonly dispatched: boolean | null;
  readonly seenAtMs: number;
  readonly reservedAtMs: number;
  readonly deadlineMs: number;
  readonly completedAtMs: number | null;
  readonly retainUntilMs: number | null;
  readonly blockedUntilMs: number | null;
  /** null: no body is kept. */
  readonly bodyBytes: number | null;
  readonly instance: string;
  /** The instance that works on it, or did, still has its lease. */
  readonly instanceAlive: boolean;
}

/** Settled records that a listing looks at: few of them may be wanted, and there may be millions. */
export const settledLookedAt = 1_000;

export interface Listing {
  /** All of one kind: waiting (`unknown`, `dead_letter`), `in_progress`, or settled. */
  readonly states: readonly State[];
  readonly olderThanMs: number;
  /** null: any. */
  readonly tenant: string | null;
  readonly path: string | null;
  readonly limit: number;
}

/** All that is given must hold. */
export interface Search {
  /** Beginning of what core/record.ts's hashOf gives, in lower case. */
  readonly hashPrefix: string | null;
  readonly key: string | null;
  readonly tenant: string | null;
  readonly path: string | null;
  readonly method: string | null;
  readonly limit: number;
}

export interface AuditEntry {
  readonly atMs: number;
  readonly actor: string;
  readonly action: 'complete' | 'release' | 'purge';
  readonly reason: string;
  readonly epoch: string;
  readonly from: State;
  readonly to: State;
}

export interface LateView extends Pick<LateAnswer, 'attempt' | 'requestId' | 'outcome' | 'status'> {
  readonly receivedAtMs: number;
  readonly bodyBytes: number | null;
}

export interface History {
  readonly audit: readonly AuditEntry[];
  readonly lateAnswers: readonly LateView[];
}

/** What the person saw when deciding. If any of it is no longer so, nothing is changed. */
export type Seen = Pick<RecordView, 'scope' | 'key' | 'attempt' | 'epoch' | 'state'>;

export interface Decision {
  readonly actor: string;
  readonly reason: string;
}

export type ChangeResult =
  /** Durable, together with its line in the audit. */
  | { readonly kind: 'done'; readonly record: RecordView | null }
  /** Somebody else moved the record first, or the move is not legal. `record` is what is there now. */
  | { readonly kind: 'refused'; readonly record: RecordView | null }
  /** Nothing was changed, and nothing of this call can change it later. */
  | { readonly kind: 'not_done'; readonly cause: Error }
  /** It may have been done, or may still be: only a look can tell. */
  | { readonly kind: 'unconfirmed'; readonly cause: Error };

export interface OperatorStore {
  /** Waiting and in progress: oldest first. Settled: among those kept longest from now only. Always by an index. */
  list(listing: Listing): Promise<readonly RecordView[]>;
  /** Among what is not settled, and what people or late answers have to do with. Never reads the whole table. */
  find(search: Search): Promise<readonly RecordView[]>;
  /** Reads the whole table, which may take long. */
  findAnywhere(search: Search): Promise<readonly RecordView[]>;
  /** About how many records there are, by the server's statistics. */
  countRoughly(): Promise<number>;
  at(id: RecordId): Promise<RecordView | null>;
  history(id: RecordId): Promise<History>;
  /** null: none is kept. */
  answerAt(id: RecordId): Promise<StoredAnswer | null>;
  /** The settings that make a key's identity; null: no instance has ever used this store. */
  identity(): Promise<string | null>;

  /**
   * From `unknown` or `dead_letter` → `completed`: retries get this answer from now on.
   * This and the next two: of any number of calls about one record as it was seen, at most one is ever `done`, and that
   * one leaves exactly one line in the audit. They never reject.
   */
  completeIfUnchanged(seen: Seen, by: Decision, completion: Given): Promise<ChangeResult>;
  /** From `unknown` or `dead_letter` → `failed_retryable`: the next retry runs. A late answer still counts until then. */
  releaseIfUnchanged(seen: Seen, by: Decision, retentionMs: number): Promise<ChangeResult>;
  /**
   * From `completed` → `failed_retryable`, the answer erased. Nothing runs under this key for a while, since another
   * replica may still replay the old answer; and no late answer of the old attempt brings it back.
   */
  purgeIfUnchanged(seen: Seen, by: Decision): Promise<ChangeResult>;

  close(): Promise<void>;
}

export interface Given {
  readonly answer: StoredAnswer;
  readonly retentionMs: number;
}
