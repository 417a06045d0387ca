import { serverMessage, type Trap } from '../test/helpers/tcp-proxy.ts';
import { until } from '../test/helpers/until.ts';
import type { Notes } from './notes.ts';
import { atMost, leaseOver } from './patience.ts';
import type { Replica } from './replica.ts';
import type { Struck } from './strike.ts';

/** While nothing could pass between the sidecar and the store; null: it could. */
export type StoreCut = { readonly from: number; readonly until: number } | null;

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

export async function cutPostgres(struck: Struck): Promise<StoreCut> {
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

export async function cutUpstream({ notes, victim, asked, letGo }: Struck): Promise<void> {
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

/** Answered at once, also where the upstream was told to wait with the first. */
export async function runElsewhere(notes: Notes, replica: Replica): Promise<void> {
  const { call, done } = notes.ask({ replica, tenant: 'a', key: notes.key });
  notes.lane.upstream.release(call);
  await atMost(done);
}
