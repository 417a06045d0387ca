import type { Played } from './schedule.ts';

/** A schedule that broke a promise. */
interface Failed {
  readonly seed: number;
  readonly violation: string;
}

/** What many schedules came to. Plain data: it goes over pipes and into files. */
export interface Tally {
  played: number;
  steps: number;
  calls: number;
  served: number;
  /** Schedules in which each state was met. */
  readonly seen: Record<string, number>;
  readonly failed: Failed[];
}

export function emptyTally(): Tally {
  return { played: 0, steps: 0, calls: 0, served: 0, seen: {}, failed: [] };
}

export function count(tally: Tally, seed: number, { steps, calls, served, seen, violation }: Played): void {
  tally.played += 1;
  tally.steps += steps;
  tally.calls += calls;
  tally.served += served;
  for (const what of seen) tally.seen[what] = (tally.seen[what] ?? 0) + 1;
  if (violation !== null) tally.failed.push({ seed, violation });
}

export function add(to: Tally, more: Tally): void {
  to.played += more.played;
  to.steps += more.steps;
  to.calls += more.calls;
  to.served += more.served;
  for (const [what, times] of Object.entries(more.seen)) to.seen[what] = (to.seen[what] ?? 0) + times;
  to.failed.push(...more.failed);
}

/** States that a few thousand schedules must have met, or they prove nothing. */
const rareStates = [
  'unconfirmed reserve: mine',
  'unconfirmed settlement: done',
  'late reserve',
  'late settle',
  'late answer accepted',
  'late answer refused',
  'take over of a released record',
  'take over of an expired record',
  'oversized answer',
  'released by an oversized answer',
  'oversized answer that would free its key is cut',
  'release_never_sent',
  'release_undispatched',
  'sweep',
  'operator_release',
  'operator_complete',
  'operator_purge',
  'replayed from memory',
  'start refused',
  'stopped in the queue',
  'lapsed lease',
  'failover with a loss',
  'failover that loses a settlement',
  'answered answer_unsaved',
  'reserved again after it was reaped',
  'drained',
  'clients cut in a drain',
  'given up at the end of a drain',
] as const;

export function neverSeen({ seen }: Tally): string[] {
  return rareStates.filter((state) => seen[state] === undefined);
}
