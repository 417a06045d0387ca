import type { RecordView } from '../store/operator.ts';
import type { OperatorSettings } from './settings.ts';

/** What may be done about a record, or what happens to it by itself. */
export type NextStep =
  /** It ran: a person gives the answer. `needsRetention`: and says how long to keep it. */
  | { readonly kind: 'complete'; readonly needsRetention: boolean }
  /** It did not run and no longer can: a person frees the key. */
  | { readonly kind: 'release' }
  | { readonly kind: 'purge'; readonly retainUntilMs: number | null }
  | Wait
  /** It was purged: nothing runs under this key until then. */
  | { readonly kind: 'blocked'; readonly blockedUntilMs: number }
  /** There is nothing to do: the next retry runs. */
  | { readonly kind: 'retry' };

/** A sidecar settles it or makes it unknown, at the latest a sweep after its deadline. */
export interface Wait {
  readonly kind: 'wait';
  /** The instance that works on it still has its lease. */
  readonly isWorkedOn: boolean;
  readonly deadlineMs: number;
  readonly sweepMs: number;
}

type Settings = Pick<OperatorSettings, 'sweepMs' | 'knowsRoutes'>;

export function nextSteps(settings: Settings, record: RecordView): readonly NextStep[] {
  const { state, retainUntilMs, blockedUntilMs, seenAtMs } = record;
  switch (state) {
    case 'unknown':
    case 'dead_letter':
      return [{ kind: 'complete', needsRetention: !settings.knowsRoutes }, { kind: 'release' }];
    case 'in_progress':
      return [waitFor(settings, record)];
    case 'completed':
      return [{ kind: 'purge', retainUntilMs }];
    case 'failed_retryable':
      if (blockedUntilMs !== null && blockedUntilMs > seenAtMs) return [{ kind: 'blocked', blockedUntilMs }];
      return [{ kind: 'retry' }];
  }
}

/** An attempt in progress may be about to settle its record: nobody else may. */
export function waitFor(
  { sweepMs }: Pick<Settings, 'sweepMs'>,
  { instanceAlive, deadlineMs }: RecordView,
): Wait {
  return { kind: 'wait', isWorkedOn: instanceAlive, deadlineMs, sweepMs };
}
