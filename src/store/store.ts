import type { Fingerprint, RecordId, State, StoredAnswer, StoredRecord } from '../core/record.ts';
import type { Outcome } from '../core/settle.ts';
import type { Moment } from './moment.ts';

/**
 * THE INTERFACE between Oncegate and what keeps its records. test/store/contract.ts holds every implementation to
 * the promises written here. "Durable" means acknowledged by the server with its durability settings on.
 */

/** One try to own a key. `attempt` is chosen by us before anything is sent, so an unconfirmed write can be recognised. */
export interface Reservation extends RecordId {
  readonly attempt: string;
  /** The lease under which this attempt will run. */
  readonly instance: string;
  readonly fingerprint: Fingerprint;
  readonly hadCredentials: boolean;
  readonly tenant: string | null;
  readonly method: string;
  readonly path: string;
  readonly requestId: string;
  /** From now, by the database's clock; past it the sweeper calls the attempt unknown. */
  readonly deadlineMs: number;
  /** The attempt sets the mark before sending (`markDispatchedIfHeld`): without it, it was provably not sent. */
  readonly marks: boolean;
  /** Read just before the row is sent: a client that has gone reserves nothing. */
  readonly abandoned: () => boolean;
}

/** A look at a record, perhaps for somebody else who wanted the same key. */
export interface Look {
  /** Just before the store was asked. */
  readonly asked: Moment;
  /** What was left of its retention, at least: no clock of ours is compared with the database's. null: it is not settled. */
  readonly retainForMs: number | null;
}

export type ReserveResult =
  /** Durable and ours: this process may forward, once. */
  | { readonly kind: 'reserved'; readonly epoch: string }
  | { readonly kind: 'exists'; readonly record: StoredRecord; readonly look: Look }
  /** Nothing was sent to the store for this item. */
  | { readonly kind: 'abandoned' }
  /**
   * Not confirmed within the bounded wait; nobody may forward it. `mayExist`: a statement of it was sent and not answered, so a row
   * may be there, or may still come. Else no row of this attempt can ever exist.
   */
  | { readonly kind: 'unavailable'; readonly cause: Error; readonly mayExist: boolean };

/** A record as the attempt that holds it addresses it. */
export interface Held extends RecordId {
  readonly attempt: string;
}

/** An attempt of which its own process knows that nothing was sent and nothing ever will be. */
export interface NeverSent extends Held {
  readonly instance: string;
}

export type NeverSentResult =
  | 'released'
  /** Its record cannot be written now: somebody has locked it, or the server does not take it. */
  | 'locked'
  /** The attempt holds no record that could be released: none to be seen yet, another attempt's, or a settled one. */
  | 'not_held';

export type MarkResult =
  /** Durable: it may be sent. */
  | { readonly kind: 'marked' }
  /** The record is no longer this attempt's to send. */
  | { readonly kind: 'refused' }
  /** Not confirmed: a mark may be there, and nothing may be sent. */
  | { readonly kind: 'unavailable'; readonly cause: Error };

export interface Completion extends Held {
  readonly answer: StoredAnswer;
  readonly retentionMs: number;
}

export interface Release extends Held {
  /** The upstream's status, where there was one. */
  readonly status: number | null;
  readonly error: string;
  readonly retentionMs: number;
}

export interface Doubt extends Held {
  readonly status: number | null;
  readonly error: string;
}

export type SettleResult =
  | { readonly kind: 'settled'; readonly retainUntilMs: number | null }
  /**
   * The guard did not hold: another attempt has the key, or the record has moved on. Or the store would not take the
   * answer in any form, and the record is unknown. `record` is what is there now.
   */
  | { readonly kind: 'refused'; readonly record: StoredRecord | null }
  /** The store was closed before any answer, or can never take it; the sweeper will settle the record. */
  | { readonly kind: 'unconfirmed'; readonly cause: Error };

export interface BrokenAnswer extends Held {
  readonly error: string;
}

/** What came of an attempt that no longer had its key: it may have run beside the one that has it. */
export interface LateAnswer extends Held {
  readonly requestId: string;
  readonly outcome: Outcome;
  /** null: it was sent, and no complete answer came. */
  readonly status: number | null;
  readonly answer: Pick<StoredAnswer, 'headers' | 'body'> | null;
}

export interface Swept extends Held {
  readonly method: string;
  readonly path: string;
  readonly requestId: string;
  /** The instance whose attempt it was. */
  readonly instance: string;
  /** `lease_over` where both hold. */
  readonly reason: 'lease_over' | 'deadline_passed';
  readonly to: Extract<State, 'unknown' | 'failed_retryable'>;
}

/** What is not settled, now. Counts stop at a bound of the store's. */
export interface Census {
  readonly inProgress: number;
  /** Of these, past their deadline. */
  readonly overdue: number;
  readonly unknown: number;
  readonly deadLetter: number;
  /** Age of the oldest that waits for somebody, `unknown` or `dead_letter`; null: none does. */
  readonly oldestWaitingMs: number | null;
  readonly lateAnswers: number;
}

export interface Store {
  /**
   * Owns the key if nobody does. Of any number of concurrent calls for one (scope, key), on any number of store
   * instances, at most one ever gets `reserved`. Never rejects; never takes longer than the store's bounded wait.
   */
  reserve(reservation: Reservation): Promise<ReserveResult>;

  /**
   * Owns a key whose record may run again: `failed_retryable`, or past retention. Compare-and-set on the previous
   * attempt, epoch and state, so that a delayed duplicate of this call can never take the key twice.
   */
  takeOverIfUnchanged(previous: StoredRecord, reservation: Reservation): Promise<ReserveResult>;

  /** For a reservation that `marks`, once, just before it is sent. Never rejects; never takes longer than `reserve`. */
  markDispatchedIfHeld(held: Held): Promise<MarkResult>;

  /**
   * From `in_progress`, `unknown`, `failed_retryable` or `dead_letter` → `completed`, while `attempt` holds the record.
   * This and the next two are retried until the store has answered or is closed; they never reject.
   * Calling one again with the same arguments after it succeeded is `settled` again.
   */
  completeIfHeld(completion: Completion): Promise<SettleResult>;
  /** From `in_progress`, `unknown` or `dead_letter` → `failed_retryable`. The row stays. */
  releaseIfHeld(release: Release): Promise<SettleResult>;
  /** From `in_progress` → `unknown`. */
  markUnknownIfHeld(doubt: Doubt): Promise<SettleResult>;

  /** Keeps evidence for people; it never answers a request. Once per attempt. Rejects with `store_unavailable`. */
  keepLateAnswer(late: LateAnswer): Promise<void>;

  /**
   * Notes on a `completed` record that its answer, too large to keep, broke off: for people, and it changes nothing else. Nothing
   * happens where another attempt has the key. Tried again while the store does not answer, for five minutes; then it rejects with
   * `store_unavailable`.
   */
  noteBrokenAnswerIfHeld(broken: BrokenAnswer): Promise<void>;

  /** The records as they are now, in the order asked for; null where there is none. Rejects with `store_unavailable`. */
  read(ids: readonly RecordId[]): Promise<readonly (StoredRecord | null)[]>;

  /**
   * Registers a new instance with a live lease. Rejects with `store_unavailable`, or with `identity_changed` where the store is now
   * used with other settings.
   */
  openLease(instance: string, leaseMs: number): Promise<void>;
  /** false: the lease had already lapsed. A lapsed lease never lives again. Rejects with `store_unavailable`. */
  renewLease(instance: string, leaseMs: number): Promise<boolean>;
  /** Ends a lease early, at a clean stop. */
  closeLease(instance: string): Promise<void>;

  /**
   * `in_progress` records past their deadline, or whose instance has no live lease → `unknown`; at most `limit`. Those that
   * mark before they send and have not → `failed_retryable`: they were provably not sent, and can never be any more.
   * `leasesCount` is asked once the records have been found; false: only what is past its deadline is swept.
   */
  sweep(limit: number, leasesCount?: () => boolean): Promise<readonly Swept[]>;
  /**
   * From `in_progress`, `unknown` or `dead_letter` → `failed_retryable`, where the attempt and its instance hold the record. This is the
   * word of the attempt itself, so it counts after a sweep, too. One result for each, in order.
   */
  releaseIfNeverSent(given: readonly NeverSent[]): Promise<readonly NeverSentResult[]>;
  /** Deletes at most `limit` records past retention, and instances long gone. Says how many records. */
  reap(limit: number): Promise<number>;

  /** Cheap whatever the number of records. Rejects with `store_unavailable`. */
  census(): Promise<Census>;

  /** Answers when the store can take reservations; rejects with the reason when not. */
  check(): Promise<void>;
  /** Waits for what is under way up to `graceMs`, then closes every connection. May be called twice. */
  close(graceMs: number): Promise<void>;
}
