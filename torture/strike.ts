import { serverMessage, type Trap } from '../test/helpers/tcp-proxy.ts';
import { until } from '../test/helpers/until.ts';
import type { Asked } from './client.ts';
import type { Lane } from './lane.ts';
import type { Notes } from './notes.ts';
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

/**
 * By the time that we hear of "reserve sent" the statement may be through. So what shall not arrive is held from before: the
 * statement itself, or the server's word that it is committed.
 */
export function trapFor({ plan, key }: Notes, victim: Replica): Trap | null {
  if (plan.point.name !== 'reserve sent' || plan.action !== 'cut postgres' || plan.cut === 'hole')
    return null;
  const line = victim.lines.postgres;
  return plan.cut === 'after'
    ? line.onceServerSends(serverMessage('C', 'INSERT'), 'hold')
    : line.onceClientSends(key, 'hold');
}

/** While nothing could pass between the sidecar and the store; null: it could. */
export type StoreCut = { readonly from: number; readonly until: number } | null;

const liveLeases = `SELECT count(*)::int AS live
FROM oncegate.instance
WHERE lease_until > clock_timestamp()`;

const endBackends = `SELECT pg_terminate_backend(pid)
FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'oncegate%'`;

/** Milliseconds for something to happen that may as well not happen; then the fault goes on without. */
const patienceMs = 2_500;

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

async function cutPostgres(struck: Struck): Promise<StoreCut> {
  const { notes, victim, letGo } = struck;
  const { lane, plan } = notes;
  const line = victim.lines.postgres;
  const fresh = { replica: victim, tenant: 'a', key: notes.newKey, path: '/plain' };
  if (plan.cut === 'rival') {
    line.pause('toServer');
    const other = lane.replicas.find((one) => one !== victim) as Replica;
    await runElsewhere(notes, other);
    line.cutAll();
    line.resume();
    letGo();
    return null;
  }
  if (plan.cut === 'hole') {
    line.pause();
    const from = Date.now();
    letGo();
    notes.ask(fresh);
    await leaseOver(lane);
    const end = Date.now();
    // What was on its way arrives late, or never.
    if (plan.isLong) line.cutAll();
    line.resume();
    return { from, until: end };
  }
  if (plan.cut === 'after') await answerIsLost(struck);
  const isBack = plan.cut === 'after' && !plan.isLong;
  line.refuse(!isBack);
  line.cutAll();
  line.resume();
  if (isBack) {
    letGo();
    return null;
  }
  const from = Date.now();
  letGo();
  const { done } = notes.ask(fresh);
  if (plan.isLong) await leaseOver(lane);
  await atMost(done);
  const end = Date.now();
  line.refuse(false);
  return { from, until: end };
}

/** The server does what it was sent and says so, and nobody hears it. */
async function answerIsLost({ notes, victim, trap }: Struck): Promise<void> {
  const line = victim.lines.postgres;
  line.pause('toClient');
  if (!notes.plan.point.name.endsWith(' sent')) return;
  const said = trap ?? line.onceServerSends(() => true, 'hold');
  await atMost(said.fired, 500);
  said.disarm();
  notes.lost = await notes.lookAtMain();
}

async function cutUpstream({ notes, victim, asked, letGo }: Struck): Promise<void> {
  const { plan, lane } = notes;
  const lines = [victim.lines.upstream, victim.lines.narrow];
  if (plan.cut === 'hole') {
    for (const line of lines) line.pause();
    letGo();
    // Long: until the sidecar gives up on it by itself.
    if (plan.isLong && asked !== undefined) await atMost(asked.done, 6_000);
    for (const line of lines) line.cutAll();
    for (const line of lines) line.resume();
    return;
  }
  if (plan.cut === 'after') {
    for (const line of lines) line.pause('toClient');
    const { number } = plan;
    await atMost(
      until('upstream', () => lane.upstream.startsOf(number).some(({ call }) => call === asked?.call)),
      300,
    );
  }
  for (const line of lines) {
    line.refuse(true);
    line.cutAll();
    line.resume();
  }
  letGo();
  const fresh = { replica: victim, tenant: 'a', key: notes.newKey, path: '/plain' };
  await atMost(notes.ask(fresh).done);
  for (const line of lines) line.refuse(false);
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

/** Answered at once, also where the upstream was told to wait with the first. */
async function runElsewhere(notes: Notes, replica: Replica): Promise<void> {
  const { call, done } = notes.ask({ replica, tenant: 'a', key: notes.key });
  notes.lane.upstream.release(call);
  await atMost(done);
}

/** One of the lane's sidecars has no lease any more. */
async function leaseOver({ database, replicas }: Lane): Promise<void> {
  await until('a lease is over', async () => {
    const { rows } = await database.query<{ live: number }>(liveLeases);
    return (rows[0]?.live ?? 0) < replicas.length;
  });
}

/** Waits no longer than that; whether it happened is for the checker to see. */
async function atMost(work: Promise<unknown>, ms = patienceMs): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
  await Promise.race([work.catch(() => {}), late]);
  clearTimeout(timer);
}
