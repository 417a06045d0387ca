import { freePort } from '../src/store/postgres/embedded-launch.ts';
import { expireAndReap, type Store } from './expire-and-reap.ts';
import { type Bench, send } from './measure.ts';
import { spreadOf } from './spread.ts';
import { type Site, startOncegate } from './start.ts';
import { warmUp } from './warm-up.ts';

export interface Reaping {
  readonly expired: number;
  readonly rowsPerSecond: number;
  /** While requests come in. */
  readonly rowsPerSecondBeside: number;
  /** Of those requests, without the reaper and beside it; null: it was done before enough of them were. */
  readonly p99Ms: number;
  readonly p99MsBeside: number | null;
}

interface Load {
  readonly connections: number;
  readonly warmUpRequests: number;
}

/** So many requests make one p99. */
const requestsPerLook = 500;
const looksBefore = 5;

/** Keys that expire all in the same second, under an instance that both serves and reaps. */
export async function measureReaping(
  bench: Bench,
  site: Site,
  store: Store,
  expired: number,
  { connections, warmUpRequests }: Load,
): Promise<Reaping> {
  const opsPort = await freePort(0);
  // It looks as soon as there is something; the pause between two looks is not what is measured.
  const env = { ONCEGATE_LOOPS_REAP: '100ms', ONCEGATE_DRAIN_DELAY: '0s' };
  const name = `reaping-${store.keys}`;
  const { port, child } = await startOncegate(site, { name, databaseUrl: store.url, opsPort, env });
  const traffic = { kind: 'first' } as const;
  await warmUp(
    bench,
    { port, traffic },
    { requests: warmUpRequests, connections, seconds: Number.POSITIVE_INFINITY },
    () => {},
  );
  const look = async (): Promise<number> => {
    const { p99Ms } = await send(bench, { port, traffic, connections, requests: requestsPerLook });
    return p99Ms;
  };

  const alone = await expireAndReap(store, expired, opsPort);
  const before: number[] = [];
  for (let count = 0; count < looksBefore; count += 1) before.push(await look());
  const beside: number[] = [];
  const underLoad = await expireAndReap(store, expired, opsPort, async (reaping) => {
    while (reaping()) {
      const p99Ms = await look();
      if (reaping()) beside.push(p99Ms);
    }
  });
  await child.stop();
  return {
    expired,
    rowsPerSecond: alone,
    rowsPerSecondBeside: underLoad,
    p99Ms: spreadOf(before).median,
    p99MsBeside: beside.length === 0 ? null : spreadOf(beside).median,
  };
}
