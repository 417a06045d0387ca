import type { RecordView } from '../store/operator.ts';
import { waitFor } from './next-steps.ts';
import { mayNot, type Planned, type Refusal, refusalByEpoch } from './plan.ts';
import type { OperatorSettings } from './settings.ts';

/** Milliseconds. As long as an answer lives in a replica's memory (proxy/replay-cache.ts): so long it may still be replayed. */
export const replayedAfterPurgeMs = 30_000;

/** Decides whether the stored answer of a record may be forgotten. Changes nothing; `carryOut` does. */
export function planPurge(
  settings: OperatorSettings,
  record: RecordView,
  { epoch }: { readonly epoch: string | null },
): Planned {
  const why = refusalByEpoch(record, epoch) ?? refusalByState(settings, record);
  return why === null ? { kind: 'may', plan: { kind: 'purge', record } } : mayNot(why);
}

/** null: it may be purged. */
function refusalByState(settings: OperatorSettings, record: RecordView): Refusal | null {
  switch (record.state) {
    case 'completed':
      return null;
    case 'in_progress':
      return { kind: 'in_progress', wait: waitFor(settings, record) };
    case 'unknown':
    case 'dead_letter':
      return { kind: 'unresolved' };
    case 'failed_retryable':
      return { kind: 'no_answer' };
  }
}
