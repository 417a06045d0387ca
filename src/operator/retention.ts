import type { RecordView } from '../store/operator.ts';
import type { OperatorSettings } from './settings.ts';

/** How long a resolution is kept. */
export type Retention =
  | { readonly kind: 'given'; readonly retentionMs: number }
  /** As its route says. */
  | { readonly kind: 'of_route' };

export type RetentionResult =
  | { readonly kind: 'retention'; readonly retention: Retention }
  | { readonly kind: 'too_short'; readonly leastMs: number }
  /** The routes are not known, and an answer kept for less than the sidecars would lets a retry run again. */
  | { readonly kind: 'missing' };

/** Milliseconds. As in the config: an answer that is past its retention at once would be run again. */
const leastRetentionMs = 1_000;

/** Decides how long a resolution is kept. `retentionMs` is null where none was given. */
export function readRetention(
  { knowsRoutes }: OperatorSettings,
  resolution: 'complete' | 'release',
  retentionMs: number | null,
): RetentionResult {
  if (retentionMs !== null && retentionMs < leastRetentionMs)
    return { kind: 'too_short', leastMs: leastRetentionMs };
  if (retentionMs !== null) return { kind: 'retention', retention: { kind: 'given', retentionMs } };
  if (resolution === 'complete' && !knowsRoutes) return { kind: 'missing' };
  return { kind: 'retention', retention: { kind: 'of_route' } };
}

export function retentionMsOf(
  settings: OperatorSettings,
  { method, path }: RecordView,
  retention: Retention,
): number {
  return retention.kind === 'given' ? retention.retentionMs : settings.policyFor(method, path).retentionMs;
}
