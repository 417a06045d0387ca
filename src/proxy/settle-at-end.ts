import { settle } from '../core/settle.ts';
import { asError } from '../errors.ts';
import type { Attempt } from './attempts.ts';
import { complete, giveUp } from './complete.ts';
import type { ProxyDeps } from './deps.ts';
import type { Exchange } from './exchange.ts';
import type { Forwarded } from './forward.ts';
import type { Claim } from './reserve.ts';

/**
 * Whether the last byte decides, and not the head: an answer too large to hold that does not end its key. Its head alone frees
 * nothing, for the upstream may still be at work on it, and it may break off.
 */
export function endsWithLastByte({ policy }: Exchange, { captured }: Forwarded): boolean {
  return captured.kind === 'large' && settle(captured.ending, policy.outcomes) !== 'store';
}

/**
 * Settles such an answer once the upstream has sent its last byte, whatever its client does meanwhile. Until then the attempt is
 * known and its record in progress. Never rejects.
 */
export async function settleAtEnd(
  deps: ProxyDeps,
  exchange: Exchange,
  { wanted, attempt, forwarded }: { wanted: Claim; attempt: Attempt; forwarded: Forwarded },
): Promise<void> {
  const { capture, captured } = forwarded;
  try {
    const headMs = performance.now();
    const ending = await capture.endedBeforeClient();
    const endedMs = performance.now();
    exchange.forwardMs = (exchange.forwardMs ?? 0) + endedMs - headMs;
    const ended = { capture, captured: { ...captured, ending } };
    const { others } = await complete(deps, exchange, { wanted, attempt, forwarded: ended });
    exchange.completeMs = performance.now() - endedMs;
    attempt.conclude(others);
  } catch (error) {
    exchange.error = asError(error);
    await giveUp(deps, exchange, wanted, attempt);
  } finally {
    capture.letEnd();
  }
}

/**
 * An answer too large to keep that ends its key counts as run once its head is there. If it then breaks off, the record and the log
 * say so: its client may ask what became of the rest. Never rejects.
 */
export async function noteIfBroken(
  deps: ProxyDeps,
  exchange: Exchange,
  { wanted, attempt, forwarded }: { wanted: Claim; attempt: Attempt; forwarded: Forwarded },
): Promise<void> {
  const ending = await forwarded.capture.ended();
  if (ending.kind === 'answered') return;
  exchange.error = ending.error;
  const { scope, key } = wanted;
  const error = `the answer broke off: ${ending.error.message}`;
  // Not waited for: the store may be away for a while, and the log must not wait.
  deps.store.noteBrokenAnswerIfHeld({ scope, key, attempt: attempt.id, error }).catch(() => {});
}
