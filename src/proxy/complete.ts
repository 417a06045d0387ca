import { decide } from '../core/decide.ts';
import { clientHeaders, decodeStored, encodeStored } from '../core/response.ts';
import { type Outcome, settle } from '../core/settle.ts';
import { OncegateError } from '../errors.ts';
import { answerRefused } from '../events.ts';
import type { SettleResult } from '../store/store.ts';
import { UpstreamFault } from '../upstream/failure.ts';
import type { Attempt } from './attempts.ts';
import type { Captured } from './capture.ts';
import type { ProxyDeps } from './deps.ts';
import type { Exchange } from './exchange.ts';
import type { Forwarded } from './forward.ts';
import { replay } from './replay.ts';
import type { IdempotencyStatus, Reply } from './reply.ts';
import type { Claim } from './reserve.ts';

/** What an attempt came to: for the client that ran it, and for those who waited for it. */
export interface Conclusion {
  readonly first: Reply;
  /** Made only if somebody waited. */
  readonly others: () => Reply;
}

/** Milliseconds a client waits for the store to take an answer; then it is told to ask again with the same key. */
const unsavedMs = 10_000;

/** Settles the record by the outcome table, and answers only what the store has made durable. */
export async function complete(
  deps: ProxyDeps,
  exchange: Exchange,
  { wanted, attempt, forwarded }: { wanted: Claim; attempt: Attempt; forwarded: Forwarded },
): Promise<Conclusion> {
  const { captured, capture } = forwarded;
  const outcome = settle(captured.ending, exchange.policy.outcomes);
  exchange.outcome = outcome;
  if (captured.ending.kind !== 'answered') exchange.error = captured.ending.error;
  const headers = captured.head === null ? [] : clientHeaders(deps.memos, captured.head.headers);
  const settling = { wanted, attempt, captured, headers, outcome };
  const result = await within(settleAndClose(deps, exchange, settling), unsavedMs);
  if (result.kind === 'settled')
    return conclusionOf(deps, exchange, { forwarded, headers, outcome, retainUntilMs: result.retainUntilMs });
  if (exchange.settling === null) capture.discard();
  if (result.kind === 'unconfirmed') {
    exchange.error = result.cause;
    // Nothing was promised to be kept: the client may hear what happened.
    if (outcome !== 'store')
      return conclusionOf(deps, exchange, { forwarded, headers, outcome, retainUntilMs: null });
    return both({ kind: 'problem', code: 'answer_unsaved' });
  }
  exchange.outcome = 'refused';
  return both(afterRefusal(deps, exchange, { wanted, refused: result }));
}

/** What was never sent proves nothing; all else may have run beside the attempt that has the key, and somebody must look. */
async function keepEvidence(deps: ProxyDeps, exchange: Exchange, settling: Settling): Promise<void> {
  const { wanted, attempt, captured, headers, outcome } = settling;
  if (captured.ending.kind === 'not_started') return;
  const status = captured.head?.status ?? null;
  const late = { attempt: attempt.id, requestId: exchange.requestId, status, outcome };
  const body = captured.kind === 'whole' ? captured.body : null;
  const answer = captured.head === null ? null : { headers: encodeStored(deps.memos, headers), body };
  const { scope, key } = wanted;
  const kept = await deps.store.keepLateAnswer({ scope, key, ...late, answer }).then(
    () => true,
    () => false,
  );
  const { route } = exchange.policy;
  answerRefused.publish({ id: wanted, instance: attempt.instance, route, ...late, kept });
}

/** A fault of ours after the key was reserved: the record becomes unknown, whatever had happened. */
export async function giveUp(
  deps: ProxyDeps,
  exchange: Exchange,
  wanted: Claim,
  attempt: Attempt,
): Promise<Reply> {
  const reply: Reply = { kind: 'problem', code: 'upstream_failed' };
  const error = `fault in oncegate: ${exchange.error?.message ?? 'none given'}`;
  const doubt = { scope: wanted.scope, key: wanted.key, attempt: attempt.id, status: null, error };
  const marked = deps.store.markUnknownIfHeld(doubt).then((result) => {
    deps.attempts.close(attempt);
    return result;
  });
  await within(marked, unsavedMs);
  exchange.outcome = 'unknown';
  attempt.conclude(() => reply);
  return reply;
}

interface Settling {
  readonly wanted: Claim;
  readonly attempt: Attempt;
  readonly captured: Captured;
  /** For the client; what of them may be replayed is stored. */
  readonly headers: readonly string[];
  readonly outcome: Outcome;
}

function write(deps: ProxyDeps, exchange: Exchange, settling: Settling): Promise<SettleResult> {
  const { captured, outcome } = settling;
  const { scope, key } = settling.wanted;
  const attempt = settling.attempt.id;
  const { retentionMs } = exchange.policy;
  const { ending } = captured;
  if (outcome === 'store' && captured.head !== null && ending.kind === 'answered') {
    const { status, closeFramed } = ending;
    const body = captured.kind === 'whole' ? captured.body : null;
    const answer = { status, headers: encodeStored(deps.memos, settling.headers), body, closeFramed };
    return deps.store.completeIfHeld({ scope, key, attempt, answer, retentionMs });
  }
  const status = captured.head?.status ?? null;
  const error = ending.kind === 'answered' ? `upstream answered ${ending.status}` : describe(ending.error);
  if (outcome === 'release')
    return deps.store.releaseIfHeld({ scope, key, attempt, status, error, retentionMs });
  return deps.store.markUnknownIfHeld({ scope, key, attempt, status, error });
}

/** Also when its client has long been told to ask again: a refusal that comes then is evidence all the same. */
async function settleAndClose(
  deps: ProxyDeps,
  exchange: Exchange,
  settling: Settling,
): Promise<SettleResult> {
  const result = await write(deps, exchange, settling);
  if (result.kind === 'refused') await keepEvidence(deps, exchange, settling);
  const { attempt, wanted, captured } = settling;
  // Not settled, and it never started: its record may be in progress, or be so again after a failover, and may still be released.
  if (result.kind !== 'settled' && captured.ending.kind === 'not_started')
    deps.attempts.closeUnsent(attempt, wanted);
  else deps.attempts.close(attempt);
  return result;
}

function describe(error: Error): string {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? `${code}: ${error.message}` : error.message;
}

/** Not Promise.race, which costs twice as much. */
function within(settling: Promise<SettleResult>, ms: number): Promise<SettleResult> {
  return new Promise((resolve, reject) => {
    // The error is made when it is needed: its stack costs as much as hashing the request.
    const timer = setTimeout(() => {
      resolve({ kind: 'unconfirmed', cause: new Error(`the store did not settle within ${ms} ms`) });
    }, ms);
    settling.then(
      (result) => {
        clearTimeout(timer);
        resolve(result);
      },
      (error) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}

const statusOf: Record<Outcome, IdempotencyStatus> = {
  store: 'executed',
  release: 'released',
  unknown: 'unknown',
};

interface Settled {
  readonly forwarded: Forwarded;
  readonly headers: readonly string[];
  readonly outcome: Outcome;
  readonly retainUntilMs: number | null;
}

function conclusionOf(
  { memos }: ProxyDeps,
  exchange: Exchange,
  { forwarded, headers, outcome, retainUntilMs: until }: Settled,
): Conclusion {
  const { captured, capture } = forwarded;
  const { ending, head } = captured;
  const idempotency = statusOf[outcome];
  if (ending.kind === 'not_started')
    return both({ kind: 'problem', code: whyNotStarted(ending.error), idempotency: 'released' });
  if (ending.kind === 'broken') {
    return both({ kind: 'problem', code: ending.timedOut ? 'upstream_timeout' : 'upstream_failed' });
  }
  const retainUntilMs = outcome === 'store' ? until : null;
  if (captured.kind === 'large' || head === null)
    return {
      first: { kind: 'stream', capture, headers: capture.clientHeaders(memos), idempotency, retainUntilMs },
      others: () => notKept(outcome),
    };
  const { status } = head;
  const { body } = captured;
  const first: Reply = {
    kind: 'answer',
    status,
    headers,
    body,
    idempotency,
    retainUntilMs,
    isRepeated: false,
  };
  const { closeFramed } = ending;
  const others = (): Reply => {
    const stored = encodeStored(memos, headers);
    if (outcome === 'store')
      return replay(
        memos,
        { answer: { status, headers: stored, body, closeFramed }, retainUntilMs: until },
        exchange.policy,
      );
    return { ...first, headers: decodeStored(memos, stored) ?? [], isRepeated: true };
  };
  return { first, others };
}

/** The store, where it could not be marked as sent or the lease was over when its turn came; else memory, or the upstream. */
function whyNotStarted(error: Error): 'store_unavailable' | 'overloaded' | 'upstream_unreachable' {
  if (error instanceof UpstreamFault && error.code === 'no_room') return 'overloaded';
  const isOfStore = error instanceof OncegateError && error.code === 'store_unavailable';
  const isRefused = error instanceof UpstreamFault && error.code === 'start_refused';
  return isOfStore || isRefused ? 'store_unavailable' : 'upstream_unreachable';
}

function notKept(outcome: Outcome): Reply {
  if (outcome === 'store') return { kind: 'problem', code: 'response_not_retained' };
  return { kind: 'problem', code: outcome === 'release' ? 'in_progress' : 'outcome_unknown' };
}

/** Another attempt has the key, or somebody settled it: what is kept counts, not what we got. It never runs again here. */
function afterRefusal(
  { memos }: ProxyDeps,
  exchange: Exchange,
  { wanted, refused }: { wanted: Claim; refused: Extract<SettleResult, { kind: 'refused' }> },
): Reply {
  const { record } = refused;
  if (record === null) return { kind: 'problem', code: 'outcome_unknown' };
  const verdict = decide(record, wanted);
  switch (verdict.kind) {
    case 'replay':
      return replay(memos, verdict, exchange.policy);
    case 'refuse':
      return { kind: 'problem', code: verdict.code };
    case 'in_progress':
    case 'take_over':
      return { kind: 'problem', code: 'in_progress' };
  }
}

function both(reply: Reply): Conclusion {
  return { first: reply, others: () => reply };
}
