import type { Memos } from '../core/memos.ts';
import type { Policy } from '../core/policy.ts';
import type { StoredAnswer } from '../core/record.ts';
import { decodeStored, replayStatus } from '../core/response.ts';
import type { Reply } from './reply.ts';

interface Replayable {
  readonly answer: StoredAnswer;
  readonly retainUntilMs: number | null;
}

/** A stored answer, byte for byte, to whoever asks again. */
export function replay(memos: Memos, { answer, retainUntilMs }: Replayable, policy: Policy): Reply {
  const headers = decodeStored(memos, answer.headers);
  // Not what we wrote: nothing of it may be sent, and the request must not run again.
  if (headers === null || answer.body === null) return { kind: 'problem', code: 'response_not_retained' };
  const status = replayStatus(answer.status, policy.replayStatus);
  return {
    kind: 'answer',
    status,
    headers,
    body: answer.body,
    idempotency: 'replayed',
    retainUntilMs,
    isRepeated: true,
  };
}
