import type { PresetName } from '../../src/core/settle.ts';
import type { UpstreamRequest } from '../../src/upstream/client.ts';
import { maxStoredBodyBytes, type World } from './world.ts';

/** What the upstream will say, and what of it we hold it to. */
export interface PlannedAnswer {
  readonly status: number;
  readonly headers: readonly string[];
  readonly pieces: readonly string[];
  readonly hasRetryAfter: boolean;
  readonly says: string | null;
  readonly isCloseFramed: boolean;
}

/** Bodies name the request they answer, and no two are alike. */
export function drawAnswer(
  { choices, saw, ledger }: World,
  request: UpstreamRequest,
  attempt: string,
): PlannedAnswer {
  const run = ledger.nextRun(attempt);
  const status = choices.weighted([
    [8, 201],
    [2, 200],
    [1, 409],
    [1, 500],
    [1, 503],
    [1, 429],
    [1, 502],
  ]);
  const hasRetryAfter = status === 503 && choices.chance(0.5);
  const says = choices.weighted([
    [30, null],
    [1, 'executed'],
    [1, 'not-executed'],
    [1, 'unknown'],
  ]);
  const isCloseFramed = choices.chance(0.1);
  const isLarge = choices.chance(0.08);
  if (isLarge) saw('oversized answer');
  // Its first piece alone is too much to keep: what follows comes while it is handed on.
  const filling = isLarge ? '.'.repeat(2 * maxStoredBodyBytes) : '';
  const text = `${request.body.toString()} run ${run} ${filling}`;
  const headers = ['content-type', 'text/plain', 'x-run', String(run)];
  if (!isCloseFramed) headers.push('content-length', String(text.length));
  if (hasRetryAfter) headers.push('retry-after', '1');
  if (says !== null) headers.push('oncegate-outcome', says);
  const half = text.length - 20;
  const pieces = isLarge || choices.chance(0.2) ? [text.slice(0, half), text.slice(half)] : [text];
  return { status, headers, pieces, hasRetryAfter, says, isCloseFramed };
}

const provesNothingRan = new Set([401, 403, 407, 408, 421, 425, 429, 431]);

/** Whether an answer frees its key: the table of the README, written a second time. */
export function frees(preset: PresetName, { status, hasRetryAfter, says }: PlannedAnswer): boolean {
  if (says !== null) return says === 'not-executed';
  if (preset === 'stripe') return status === 401 || status === 429;
  if (status < 500) return provesNothingRan.has(status);
  if (preset === 'payments' || status === 502 || status === 504) return false;
  return status === 503 ? hasRetryAfter : true;
}
