import { setTimeout as delay } from 'node:timers/promises';
import { reapedIn, scrape } from './scrape.ts';
import { execute, fillOncegateStore } from './stores.ts';

export interface Store {
  readonly url: string;
  readonly keys: number;
  /** How fast it was filled, from which follows when the next filling will be done. */
  readonly rowsPerSecond: number;
}

/** A reaper that takes nothing away for so long is broken. */
const silenceMs = 60_000;

const pollMs = 50;

/** Rows a second. `meanwhile` begins when they expire. */
export async function expireAndReap(
  store: Store,
  expired: number,
  opsPort: number,
  meanwhile: (reaping: () => boolean) => Promise<void> = async () => {},
): Promise<number> {
  const reaped = async (): Promise<number> => reapedIn(await scrape(opsPort));
  let before = await reaped();
  // Where others use the machine too, a filling may take much longer than the last one did: then once more, with more time.
  for (let patience = 2; !(await expireTogether(store, expired, patience)); patience *= 2) {
    await watch(reaped, before, before + expired);
    before += expired;
  }
  let isReaping = true;
  const watched = watch(reaped, before, before + expired).finally(() => {
    isReaping = false;
  });
  const [pace] = await Promise.all([watched, meanwhile(() => isReaping)]);
  return pace;
}

/** Back when they expire. false: they did before all of them were there, and were old news to the server. */
async function expireTogether(
  { url, rowsPerSecond }: Store,
  expired: number,
  patience: number,
): Promise<boolean> {
  const atMs = Date.now() + 10_000 + (patience * 1000 * expired) / rowsPerSecond;
  await fillOncegateStore(url, expired, `to_timestamp(${atMs} / 1000.0) + n * interval '1 microsecond'`);
  await execute(url, ['ANALYZE oncegate.record', 'CHECKPOINT']);
  if (Date.now() > atMs) return false;
  await delay(atMs - Date.now());
  return true;
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
