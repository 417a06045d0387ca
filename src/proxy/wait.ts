import { decide } from '../core/decide.ts';
import type { ProxyDeps } from './deps.ts';
import type { Exchange } from './exchange.ts';
import { replay } from './replay.ts';
import type { Reply } from './reply.ts';
import type { Claim } from './reserve.ts';

const inProgress: Reply = { kind: 'problem', code: 'in_progress' };

/** A duplicate in flight gets the answer of the attempt it waited for, whatever that was, or 409. It never takes the key. */
export async function waitFor(
  deps: ProxyDeps,
  exchange: Exchange,
  wanted: Claim,
  attempt: string,
): Promise<Reply> {
  const { waitMs } = exchange.policy.inFlight;
  if (waitMs === 0 || !deps.waiters.enter(wanted)) return inProgress;
  try {
    const local = deps.attempts.get(attempt);
    if (local === undefined || local.isConcluded) return await waitForOther(deps, exchange, wanted, attempt);
    const { reply, leave } = local.concluded();
    const told = await within(reply, waitMs, exchange.left);
    leave();
    return told ?? inProgress;
  } finally {
    deps.waiters.leave(wanted);
  }
}

/** The attempt runs in another process, or is over here and not yet saved: its record tells. */
async function waitForOther(
  deps: ProxyDeps,
  exchange: Exchange,
  wanted: Claim,
  attempt: string,
): Promise<Reply> {
  const { policy } = exchange;
  const record = await deps.waiters.settled(wanted, attempt, {
    waitMs: policy.inFlight.waitMs,
    left: exchange.left,
  });
  // Somebody else's attempt by now: not what was waited for.
  if (record === null || record.attempt !== attempt) return inProgress;
  const verdict = decide(record, wanted);
  switch (verdict.kind) {
    case 'replay':
      return replay(deps.memos, verdict, policy);
    case 'refuse':
      return { kind: 'problem', code: verdict.code };
    // Released: a retry may run it, a waiter may not.
    case 'take_over':
    case 'in_progress':
      return inProgress;
  }
}

async function within<T>(work: Promise<T>, ms: number, left: Promise<void>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, ms, null);
  });
  const result = await Promise.race([work, late, left.then(() => null)]);
  clearTimeout(timer);
  return result;
}
