import type { StoredAnswer } from '../core/record.ts';
import type { ChangeResult, Decision, OperatorStore, RecordView } from '../store/operator.ts';
import type { NextStep, Wait } from './next-steps.ts';

/** A change that may be made to the record as it was seen. Nothing has been changed yet: a person may still be asked. */
export type Plan =
  | {
      readonly kind: 'complete';
      readonly record: RecordView;
      readonly answer: StoredAnswer;
      readonly retentionMs: number;
    }
  | { readonly kind: 'release'; readonly record: RecordView; readonly retentionMs: number }
  | { readonly kind: 'purge'; readonly record: RecordView };

export type Planned =
  | { readonly kind: 'may'; readonly plan: Plan }
  | { readonly kind: 'may_not'; readonly why: Refusal };

export type Refusal =
  /** It ran again, or was changed, since the person saw it under this epoch: what they found out is about another attempt. */
  | { readonly kind: 'another_epoch'; readonly epoch: string }
  /** Only `unknown` and `dead_letter` are resolved. `next`: what may be done instead. */
  | { readonly kind: 'not_waiting'; readonly next: readonly NextStep[] }
  | { readonly kind: 'body_too_large'; readonly limitBytes: number }
  /** Only what is settled is purged. */
  | { readonly kind: 'in_progress'; readonly wait: Wait }
  /** It has to be resolved before it can be purged. */
  | { readonly kind: 'unresolved' }
  /** It keeps no answer, so there is nothing to purge. */
  | { readonly kind: 'no_answer' };

/** `epoch`: the one under which the person saw the record; null: they see it now. The result is null if it is that one. */
export function refusalByEpoch(record: RecordView, epoch: string | null): Refusal | null {
  return epoch === null || epoch === record.epoch ? null : { kind: 'another_epoch', epoch };
}

export function mayNot(why: Refusal): Planned {
  return { kind: 'may_not', why };
}

/** Never rejects. The store compares the record with the plan's once more, so that somebody else's change is never overwritten. */
export async function carryOut(
  { store }: { readonly store: OperatorStore },
  plan: Plan,
  by: Decision,
): Promise<ChangeResult> {
  switch (plan.kind) {
    case 'complete': {
      const { record, answer, retentionMs } = plan;
      return await store.completeIfUnchanged(record, by, { answer, retentionMs });
    }
    case 'release':
      return await store.releaseIfUnchanged(plan.record, by, plan.retentionMs);
    case 'purge':
      return await store.purgeIfUnchanged(plan.record, by);
  }
}
