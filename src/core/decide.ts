import type { Fingerprint, StoredAnswer, StoredRecord } from './record.ts';

/** What a request learns from the record that already has its key. The order of the checks is part of the contract. */
export type Verdict =
  | { readonly kind: 'take_over'; readonly previous: StoredRecord }
  | { readonly kind: 'replay'; readonly answer: StoredAnswer; readonly retainUntilMs: number | null }
  | { readonly kind: 'in_progress'; readonly attempt: string }
  | {
      readonly kind: 'refuse';
      readonly code:
        | 'key_reused'
        | 'caller_differs'
        | 'response_not_retained'
        | 'outcome_unknown'
        | 'in_progress';
    };

export interface Asking {
  readonly fingerprint: Fingerprint;
  readonly hasCredentials: boolean;
}

export function decide(record: StoredRecord, asking: Asking): Verdict {
  // Expiry first: past retention the key is free for any request, whatever it was used for.
  if (record.expired && mayExpire(record) && !record.blocked) return { kind: 'take_over', previous: record };
  if (asksForCredentials(record)) return { kind: 'take_over', previous: record };
  if (!sameRequest(record.fingerprint, asking.fingerprint)) return { kind: 'refuse', code: 'key_reused' };
  if (record.hadCredentials && !asking.hasCredentials) return { kind: 'refuse', code: 'caller_differs' };
  switch (record.state) {
    case 'completed':
      return replay(record);
    case 'in_progress':
      return { kind: 'in_progress', attempt: record.attempt };
    case 'unknown':
    case 'dead_letter':
      return { kind: 'refuse', code: 'outcome_unknown' };
    case 'failed_retryable':
      if (record.blocked) return { kind: 'refuse', code: 'in_progress' };
      return { kind: 'take_over', previous: record };
  }
}

/**
 * Released by an answer that only asked who is there. With Digest, for instance, the first try has no body and its real one
 * follows with the credentials; so any request may run next.
 */
function asksForCredentials({ state, status, blocked }: StoredRecord): boolean {
  return state === 'failed_retryable' && (status === 401 || status === 407) && !blocked;
}

/** Only settled records expire; what may still run, or may have run, never expires into running. */
function mayExpire(record: StoredRecord): boolean {
  return record.state === 'completed' || record.state === 'failed_retryable';
}

function replay(record: StoredRecord): Verdict {
  if (record.answer === null || record.answer.body === null) {
    return { kind: 'refuse', code: 'response_not_retained' };
  }
  return { kind: 'replay', answer: record.answer, retainUntilMs: record.retainUntilMs };
}

/**
 * Identical bytes are the same request under every rule; so a changed rule never turns a plain retry into 422. Nor does a
 * changed list of headers: under another one the bytes alone decide. Under the same one, each header must be the same too.
 */
export function sameRequest(stored: Fingerprint, asking: Fingerprint): boolean {
  const sameBytes = stored.raw.equals(asking.raw);
  if (stored.headers?.list !== asking.headers?.list) return sameBytes;
  if (stored.headers?.digest !== asking.headers?.digest) return false;
  return sameBytes || (stored.rule === asking.rule && stored.digest.equals(asking.digest));
}
