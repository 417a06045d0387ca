import type { RunFacts } from './facts.ts';
import type { Notes } from './notes.ts';

/** States that a proof must have met. Each is taken from what was seen, never from what was planned alone. */
export const rareStates = [
  'unconfirmed reserve, mine',
  'unconfirmed reserve, not mine',
  'late answer accepted',
  'late answer refused',
  'expired record taken over',
  'oversized answer',
  'operator freed an unknown key',
] as const;
export type RareState = (typeof rareStates)[number];

export async function rareIn(notes: Notes, facts: RunFacts): Promise<RareState[]> {
  const { plan } = notes;
  const seen: RareState[] = [];
  const { fault, calls, looks, starts, freed } = facts;
  const main = starts.filter(({ tenant, key }) => tenant === 'a' && key === notes.key);
  const atReserve = plan.point.name === 'reserve sent' && plan.action === 'cut postgres';
  // In the database when its answer was lost, and sent afterwards by that very attempt.
  if (atReserve && main.some(({ attempt, at }) => at >= fault.at && attempt === notes.lost?.attempt))
    seen.push('unconfirmed reserve, mine');
  const rivals = main.filter(({ replica }) => replica !== fault.replica);
  if (atReserve && plan.cut === 'rival' && rivals.length === 1 && main.length === 1)
    seen.push('unconfirmed reserve, not mine');
  const wasUnknown = looks.filter(({ state }) => state === 'unknown');
  if (wasUnknown.some((one) => looks.some((later) => isCompletedLater(one, later))))
    seen.push('late answer accepted');
  if ((await lateAnswers(notes)) > 0) seen.push('late answer refused');
  if (plan.point.scene === 'again' && plan.path === '/brief' && main.length > 1)
    seen.push('expired record taken over');
  if (calls.some(({ code }) => code === 'response_not_retained')) seen.push('oversized answer');
  if (freed.length > 0) seen.push('operator freed an unknown key');
  return seen;
}

type Look = RunFacts['looks'][number];

function isCompletedLater(unknown: Look, later: Look): boolean {
  return later.at >= unknown.at && later.attempt === unknown.attempt && later.state === 'completed';
}

async function lateAnswers({ lane, key }: Notes): Promise<number> {
  const { rowCount } = await lane.database.query('SELECT FROM oncegate.late_answer WHERE key = $1', [key]);
  return rowCount ?? 0;
}
