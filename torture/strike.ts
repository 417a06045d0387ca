import type { Trap } from '../test/helpers/tcp-proxy.ts';
import { until } from '../test/helpers/until.ts';
import type { Asked } from './client.ts';
import { cutPostgres, cutUpstream, runElsewhere, type StoreCut } from './cuts.ts';
import type { Notes } from './notes.ts';
import { atMost, leaseOver } from './patience.ts';
import type { Replica } from './replica.ts';

/** The moment of the fault: who is at the point, and what the client asked that led there. */
export interface Struck {
  readonly notes: Notes;
  readonly victim: Replica;
  readonly asked: Asked | undefined;
  /** It stands still inside until this; does nothing where it never stood still. */
  readonly letGo: () => void;
  /** See `trapFor`. */
  readonly trap: Trap | null;
}

const endBackends = `SELECT pg_terminate_backend(pid)
FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'oncegate%'`;

/** Does it, waits until it has lasted long enough, and undoes what would not heal by itself. */
export async function strike(struck: Struck): Promise<StoreCut> {
  const { notes, victim, asked, letGo } = struck;
  const { lane, plan } = notes;
  switch (plan.action) {
    case 'kill':
      await victim.kill('SIGKILL');
      return null;
    case 'stop':
      await sleepPastLease(struck);
      return null;
    case 'cut postgres':
      return await cutPostgres(struck);
    case 'cut upstream':
      await cutUpstream(struck);
      return null;
    case 'end backends':
      await lane.database.query(endBackends);
      letGo();
      return null;
    case 'client leaves':
      asked?.leave();
      letGo();
      return null;
    case 'slow lines':
      await slowDown(struck);
      return null;
    case 'crash postgres':
      await lane.server?.stop('immediate');
      letGo();
      await lane.server?.start();
      return null;
    case 'freeze standby':
      lane.pair?.partition();
      letGo();
      await atMost(leaseOver(lane));
      lane.pair?.mend();
      return null;
  }
}

async function sleepPastLease({ notes, victim, letGo }: Struck): Promise<void> {
  const { lane, plan } = notes;
  await victim.kill('SIGSTOP');
  letGo();
  if (plan.answersDuring) notes.release();
  await leaseOver(lane);
  const others = lane.replicas.filter((one) => one !== victim);
  if (others.length > 0) {
    await atMost(until('swept', async () => (await notes.lookAtMain())?.state !== 'in_progress'));
    const main = await notes.lookAtMain();
    if (plan.hasOperator && main?.state === 'unknown') {
      await notes.freeByOperator();
      await runElsewhere(notes, others[0] as Replica);
    }
  }
  await victim.kill('SIGCONT');
}

async function slowDown({ notes, victim, asked, letGo }: Struck): Promise<void> {
  const { requestBytes, answerBytes } = notes.plan;
  const sliceBytes = Math.max(requestBytes, answerBytes) > 10_000 ? 100 : 1;
  const lines = Object.values(victim.lines);
  for (const line of lines) line.shape({ sliceBytes, delayMs: 3 });
  letGo();
  notes.release();
  if (asked !== undefined) await atMost(asked.done, 6_000);
  for (const line of lines) line.shape({ sliceBytes: 0, delayMs: 0 });
}
