import { until } from '../test/helpers/until.ts';
import type { Lane } from './lane.ts';

const liveLeases = `SELECT count(*)::int AS live
FROM oncegate.instance
WHERE lease_until > clock_timestamp()`;

/** Milliseconds for something to happen that may as well not happen; then the fault goes on without. */
const patienceMs = 2_500;

/** One of the lane's sidecars has no lease any more. */
export async function leaseOver({ database, replicas }: Lane): Promise<void> {
  await until('a lease is over', async () => {
    const { rows } = await database.query<{ live: number }>(liveLeases);
    return (rows[0]?.live ?? 0) < replicas.length;
  });
}

/** Waits no longer than that; whether it happened is for the checker to see. */
export async function atMost(work: Promise<unknown>, ms = patienceMs): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
  await Promise.race([work.catch(() => {}), late]);
  clearTimeout(timer);
}
