import type { Decision } from '../store/operator.ts';

export type DecisionResult =
  | { readonly kind: 'decision'; readonly by: Decision }
  /** Every change has a reason in the audit. */
  | { readonly kind: 'no_reason' };

/** Who decides, and why. */
export function readDecision({ actor, reason }: Decision): DecisionResult {
  const why = reason.trim();
  return why === '' ? { kind: 'no_reason' } : { kind: 'decision', by: { actor, reason: why } };
}
