import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../src/store/postgres/embedded-launch.ts';
import { type Bench, send } from './measure.ts';
import { reapedIn, scrape } from './scrape.ts';
import { spreadOf } from './spread.ts';
import { type Site, startOncegate } from './start.ts';
import { execute, fillOncegateStore } from './stores.ts';
import { warmUp } from './warm-up.ts';

interface Store {
  readonly url: string;
  readonly keys: number;
  /** How fast it was filled, from which follows when the next filling will be done. */
  readonly rowsPerSecond: number;
}

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

/** A reaper that takes nothing away for so long is broken. */
const silenceMs = 60_000;

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

/** Rows a second. `meanwhile` begins when they expire. */
async function expireAndReap(
  { url, rowsPerSecond }: Store,
  expired: number,
  opsPort: number,
  meanwhile: (reaping: () => boolean) => Promise<void> = async () => {},
): Promise<number> {
  const reaped = async (): Promise<number> => reapedIn(await scrape(opsPort));
  const before = await reaped();
  // They must all be there, and be old news to the server, when they expire: twice what the last filling took, and more.
  const expireAtMs = Date.now() + 10_000 + (2_000 * expired) / rowsPerSecond;
  await fillOncegateStore(
    url,
    expired,
    `to_timestamp(${expireAtMs} / 1000.0) + n * interval '1 microsecond'`,
  );
  await execute(url, ['ANALYZE oncegate.record', 'CHECKPOINT']);
  if (Date.now() > expireAtMs) throw new Error('the keys expired before all of them were there');
  await delay(expireAtMs - Date.now());
  let isReaping = true;
  const watched = watch(reaped, before, before + expired).finally(() => {
    isReaping = false;
  });
  const [pace] = await Promise.all([watched, meanwhile(() => isReaping)]);
  return pace;
}

/** From the first that was seen to be gone until all are. */
async function watch(reaped: () => Promise<number>, from: number, to: number): Promise<number> {
  let [seen, seenMs] = [from, performance.now()];
  let began: { readonly count: number; readonly ms: number } | null = null;
  for (;;) {
    const count = await reaped();
    const nowMs = performance.now();
    if (count === seen && nowMs - seenMs > silenceMs)
      throw new Error(`the reaper stopped at ${count} of ${to}`);
    if (count !== seen) [seen, seenMs] = [count, nowMs];
    if (count >= to) {
      const start = began ?? { count: from, ms: nowMs - pollMs };
      return (1000 * (to - start.count)) / (nowMs - start.ms);
    }
    if (began === null && count > from) began = { count, ms: nowMs };
    await delay(pollMs);
  }
}

const pollMs = 50;
