import { until } from '../test/helpers/until.ts';
import type { Asked } from './client.ts';
import type { Notes } from './notes.ts';
import type { Replica } from './replica.ts';

/** What has to be there before the fault, and what then leads to its point. */
export interface Setting {
  /** Sidecars one of which will get to the point. */
  readonly candidates: readonly Replica[];
  /** undefined: nobody asks; background work gets there by itself. */
  readonly begin: () => Promise<Asked | undefined>;
}

const lateDeadline = `UPDATE oncegate.record
SET deadline = clock_timestamp()
WHERE key = $1 AND state = 'in_progress'`;

const expiredKey = `SELECT FROM oncegate.record
WHERE key = $1 AND retain_until <= clock_timestamp()`;

/** Points before the upstream answers: there it may be told to wait with that. */
const beforeAnswer = /^(body|reserve|mark|request|half the request)/;

export async function setUp(notes: Notes): Promise<Setting> {
  const { lane, plan, key } = notes;
  const victim = lane.replicas[plan.victim] as Replica;
  const main = { replica: victim, tenant: 'a', key };
  const alone = { candidates: [victim] };
  switch (plan.point.scene) {
    case 'fresh': {
      const isEarly = beforeAnswer.test(plan.point.name);
      const waits = isEarly && !plan.answersDuring ? 'answer' : 'no';
      const hold = plan.point.name === 'half the response' ? 'half' : waits;
      return { ...alone, begin: async () => notes.ask({ ...main, hold }) };
    }
    case 'queued':
      await holdUpstream(notes, { ...main, key: `front-${plan.number}` });
      return { ...alone, begin: async () => notes.ask(main) };
    case 'held':
      await holdUpstream(notes, main);
      return { ...alone, begin: async () => undefined };
    case 'overdue':
      await holdUpstream(notes, main);
      return { candidates: lane.replicas, begin: () => makeOverdue(notes) };
    case 'expired':
      // Beside what is reaped something runs.
      await holdUpstream(notes, { ...main, key: `held-${plan.number}`, path: '/plain' });
      await notes.ask(main).done;
      return { candidates: lane.replicas, begin: async () => undefined };
    case 'again':
      await notes.ask(main).done;
      if (plan.path === '/brief') await until('past its retention', () => isExpired(notes));
      return { ...alone, begin: async () => notes.ask(main) };
  }
}

async function holdUpstream(
  notes: Notes,
  question: { replica: Replica; tenant: string; key: string; path?: string },
): Promise<void> {
  const { call } = notes.ask({ ...question, hold: 'answer' });
  const { upstream } = notes.lane;
  await until('it is upstream', () => upstream.startsOf(notes.plan.number).some((one) => one.call === call));
}

async function makeOverdue({ lane, key }: Notes): Promise<undefined> {
  await lane.database.query(lateDeadline, [key]);
  return undefined;
}

async function isExpired({ lane, key }: Notes): Promise<boolean> {
  return ((await lane.database.query(expiredKey, [key])).rowCount ?? 0) > 0;
}
