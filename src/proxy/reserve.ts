import { decide, type Verdict } from '../core/decide.ts';
import type { Fingerprint, RecordId } from '../core/record.ts';
import type { Reservation } from '../store/store.ts';
import type { Attempt } from './attempts.ts';
import type { ProxyDeps } from './deps.ts';
import type { Exchange } from './exchange.ts';

/** What a request wants to run as. */
export interface Claim extends RecordId {
  readonly fingerprint: Fingerprint;
  readonly hasCredentials: boolean;
  readonly tenant: string | null;
}

export type Claimed =
  /** The key is ours: forward, once. */
  | { readonly kind: 'own'; readonly attempt: Attempt; readonly epoch: string; readonly takenOver: boolean }
  | Exclude<Verdict, { kind: 'take_over' }>
  | { readonly kind: 'refuse'; readonly code: 'store_unavailable' | 'in_progress' }
  | { readonly kind: 'gone' };

/** Milliseconds past the upstream's own limit, for settling: past both the sweeper calls the attempt unknown. */
const settleGraceMs = 10_000;
/** Each lost race means that somebody else moved the record; after a few the client may as well retry. */
const maxTakeOvers = 3;

/** Reserves the key, or takes it over, or says what the record that has it means for this request. */
export async function claim(deps: ProxyDeps, exchange: Exchange, wanted: Claim): Promise<Claimed> {
  const instance = deps.lease.current();
  if (instance === null) {
    exchange.error = new Error('the lease of this instance has lapsed');
    return { kind: 'refuse', code: 'store_unavailable' };
  }
  const kept = deps.replays.find(wanted);
  const known = kept === null ? null : decide(kept, wanted);
  if (known !== null && known.kind !== 'take_over') return known;
  exchange.instance = instance;
  const attempt = deps.attempts.open(instance, exchange.policy.upstream.timeoutMs + settleGraceMs);
  let isOurs = false;
  // Until the store has said otherwise.
  let mayExist = true;
  try {
    const reservation = reservationOf(exchange, wanted, attempt);
    let result = await deps.store.reserve(reservation);
    for (let takeOvers = 0; ; takeOvers += 1) {
      switch (result.kind) {
        case 'reserved':
          isOurs = true;
          return { kind: 'own', attempt, epoch: result.epoch, takenOver: takeOvers > 0 };
        case 'abandoned':
          mayExist = false;
          return { kind: 'gone' };
        case 'unavailable':
          mayExist = result.mayExist;
          exchange.error = result.cause;
          return { kind: 'refuse', code: 'store_unavailable' };
      }
      mayExist = result.record.attempt === attempt.id;
      const verdict = decide(result.record, wanted);
      if (verdict.kind === 'replay') deps.replays.keep(wanted, result.record, result.look);
      if (verdict.kind !== 'take_over') return verdict;
      if (takeOvers === maxTakeOvers) return { kind: 'refuse', code: 'in_progress' };
      mayExist = true;
      result = await deps.store.takeOverIfUnchanged(verdict.previous, reservation);
    }
  } finally {
    // Not ours, or not known to be: it is never forwarded, and the sweeper releases whatever row it may have left behind.
    if (!isOurs && mayExist) deps.attempts.closeUnsent(attempt, wanted);
    else if (!isOurs) deps.attempts.close(attempt);
  }
}

function reservationOf(exchange: Exchange, wanted: Claim, attempt: Attempt): Reservation {
  const { scope, key, hasCredentials, tenant } = wanted;
  const { rule, digest, raw, headers } = wanted.fingerprint;
  return {
    scope,
    key,
    attempt: attempt.id,
    instance: attempt.instance,
    // Its digest is made here at the latest: what waits from now on must not keep the body for it.
    fingerprint: { rule, digest, raw, headers },
    hadCredentials: hasCredentials,
    tenant,
    method: exchange.method,
    path: exchange.path,
    requestId: exchange.requestId,
    deadlineMs: attempt.deadlineMs,
    marks: exchange.policy.dispatchMark,
    abandoned: () => exchange.clientGone,
  };
}
