import { roughly } from '../doctor/roughly.ts';
import type { Plan } from '../operator/plan.ts';
import { replayedAfterPurgeMs } from '../operator/purge.ts';
import { shortId } from '../operator/short-id.ts';
import type { RecordView } from '../store/operator.ts';
import { moment } from './keys-text.ts';

export interface PlanWords {
  /** What the person is asked to confirm. */
  readonly question: string;
  /** `after`: the record as it is then; null: it is gone. */
  readonly done: (after: RecordView | null) => string;
}

export function planWords(plan: Plan): PlanWords {
  const id = shortId(plan.record);
  switch (plan.kind) {
    case 'complete': {
      const { status, body } = plan.answer;
      return {
        question: `It ran: every retry gets status ${status} and ${body?.length} bytes.`,
        done: (after) => `done: ${id} is completed; retries get ${status}${keptText(after)}`,
      };
    }
    case 'release':
      return {
        question: 'It did not run: the next retry with this key runs it.',
        done: () => `done: ${id} is failed_retryable; the next retry runs it`,
      };
    case 'purge':
      return {
        question: 'Its answer is erased for good. A retry after a minute runs the request AGAIN.',
        done: (after) => `done: the answer of ${id} is erased; ${fromWhen(after)}.\n${memory}`,
      };
  }
}

const memory = `A replica that replayed this answer a moment ago may replay it for up to ${roughly(replayedAfterPurgeMs)} more.`;

function keptText(after: RecordView | null): string {
  return after === null || after.retainUntilMs === null
    ? ''
    : `, until ${moment(after.retainUntilMs, after)}`;
}

function fromWhen(after: RecordView | null): string {
  const blockedUntilMs = after?.blockedUntilMs ?? null;
  if (after === null || blockedUntilMs === null) return 'retries run again in a minute';
  return `retries get 409 until ${moment(blockedUntilMs, after)}, then run`;
}
