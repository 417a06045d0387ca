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
WHERE key = $1 AND tenant = 'a' AND state = 'in_progress'`;

/** No row: it was reaped already. */
const keptKey = `SELECT FROM oncegate.record
WHERE key = $1 AND tenant = 'a' AND retain_until > clock_timestamp()`;

/** Points before the upstream answers: there it may be told to wait with that. */
const beforeAnswer = /^(body|reserve|mark|request|half the request)/;

/** null: something that it needs did not come about. */
export async function setUp(notes: Notes): Promise<Setting | null> {
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
      if (!(await holdUpstream(notes, { ...main, key: `front-${key}` }))) return null;
      return { ...alone, begin: async () => notes.ask(main) };
    case 'held':
      if (!(await holdUpstream(notes, main))) return null;
      return { ...alone, begin: async () => undefined };
    case 'overdue':
      if (!(await holdUpstream(notes, main))) return null;
      return { candidates: lane.replicas, begin: () => makeOverdue(notes) };
    case 'expired':
      // Beside what is reaped something runs.
      if (!(await holdUpstream(notes, { ...main, key: `held-${key}`, path: '/plain' }))) return null;
      if ((await notes.ask(main).done).how !== 'executed') return null;
      return { candidates: lane.replicas, begin: async () => undefined };
    case 'again':
      if (!/^(executed|released)$/.test((await notes.ask(main).done).how)) return null;
      if (plan.path === '/brief') await until('past its retention', () => isExpired(notes));
      return { ...alone, begin: async () => notes.ask(main) };
  }
}

/** false: it was answered without getting there. */
async function holdUpstream(
  notes: Notes,
  question: { replica: Replica; tenant: string; key: string; path?: string },
): Promise<boolean> {
  const { call, done } = notes.ask({ ...question, hold: 'answer' });
  const { upstream } = notes.lane;
  let isOver = false;
  void done.then(() => (isOver = true));
  const isThere = () => upstream.startsOf(notes.plan.number).some((one) => one.call === call);
  await until('it is upstream', () => isOver || isThere());
  return !isOver;
}

async function makeOverdue({ lane, key }: Notes): Promise<undefined> {
  await lane.database.query(lateDeadline, [key]);
  return undefined;
}

async function isExpired({ lane, key }: Notes): Promise<boolean> {
  return (await lane.database.query(keptKey, [key])).rowCount === 0;
}
