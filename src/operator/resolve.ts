import { type StoredAnswer, waitingStates } from '../core/record.ts';
import type { RecordView } from '../store/operator.ts';
import { nextSteps } from './next-steps.ts';
import { mayNot, type Planned, refusalByEpoch } from './plan.ts';
import { type Retention, retentionMsOf } from './retention.ts';
import type { OperatorSettings } from './settings.ts';

/** What a person found out about a request whose outcome is unknown. */
export type Resolution =
  /** It ran: retries get this answer from now on. */
  | { readonly kind: 'complete'; readonly answer: StoredAnswer }
  /** It did not run and no longer can: the next retry runs. */
  | { readonly kind: 'release' };

export interface ResolveInput {
  readonly resolution: Resolution;
  readonly retention: Retention;
  /** Under which the person saw the record; null: they see it now. */
  readonly epoch: string | null;
}

/** Decides whether a record may be resolved so. Changes nothing; `carryOut` does. */
export function planResolve(
  settings: OperatorSettings,
  record: RecordView,
  { resolution, retention, epoch }: ResolveInput,
): Planned {
  const byEpoch = refusalByEpoch(record, epoch);
  if (byEpoch !== null) return mayNot(byEpoch);
  if (!isWaiting(record)) return mayNot({ kind: 'not_waiting', next: nextSteps(settings, record) });
  const retentionMs = retentionMsOf(settings, record, retention);
  if (resolution.kind === 'release') return { kind: 'may', plan: { kind: 'release', record, retentionMs } };
  const { answer } = resolution;
  const limitBytes = settings.policyFor(record.method, record.path).maxStoredBodyBytes;
  if ((answer.body?.length ?? 0) > limitBytes) return mayNot({ kind: 'body_too_large', limitBytes });
  return { kind: 'may', plan: { kind: 'complete', record, answer, retentionMs } };
}

function isWaiting({ state }: RecordView): boolean {
  return waitingStates.some((waiting) => waiting === state);
}
