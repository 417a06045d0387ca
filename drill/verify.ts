import { setTimeout as delay } from 'node:timers/promises';
import { persist, repeats, tryOnce } from './call.ts';
import { describe, type Load } from './load.ts';
import type { LoggedUpstream } from './logged-upstream.ts';

export interface Verified {
  readonly keys: number;
  /** Keys that reached the upstream more than once. */
  readonly twice: readonly string[];
  /** Keys whose answer a client saw, and that is not what a retry gets now. */
  readonly lost: readonly string[];
  /** Keys that a retry finds unknown. */
  readonly unknown: readonly string[];
  /** Those among them that never reached the upstream: a doubt where there is nothing to doubt. */
  readonly needlesslyUnknown: readonly string[];
  /** Keys that no retry got an end of. */
  readonly endless: readonly string[];
}

const patienceMs = 20_000;
const atOnce = 32;

/** Asks for every key once more, as a client would, and compares with what was seen and with what the upstream logged. */
export async function verify(
  { finals }: Load,
  upstream: LoggedUpstream,
  urls: readonly string[],
): Promise<Verified> {
  const lost: string[] = [];
  const unknown: string[] = [];
  const endless: string[] = [];
  let asked = 0;
  await forEach([...finals], async ([key, before]) => {
    const now = await persist({ urls, from: asked++, key, withinMs: patienceMs });
    if (now.kind === 'unknown') unknown.push(key);
    if (now.kind === 'gave_up') endless.push(key);
    if (before.kind === 'answered' && !repeats(before, now))
      lost.push(`${key}: ${before.bytes}, now ${describe(now)}`);
  });
  const twice = [...finals.keys()].filter((key) => upstream.startsOf(key).length > 1);
  const needlesslyUnknown = unknown.filter((key) => upstream.startsOf(key).length === 0);
  return { keys: finals.size, twice, lost, unknown, needlesslyUnknown, endless };
}

/** Asks each replica for each of these unknown keys; gives back what is wrong. Nothing else may be under way. */
export async function verifyUnknown(
  keys: readonly string[],
  upstream: LoggedUpstream,
  urls: readonly string[],
): Promise<readonly string[]> {
  const faults: string[] = [];
  await forEach([...keys], async (key) => {
    const before = upstream.startsOf(key).length;
    for (const url of urls) {
      const seen = await tryOnce(url, key);
      if (seen.kind !== 'unknown') faults.push(`${key}: ${seen.kind === 'refused' ? seen.code : seen.kind}`);
    }
    if (upstream.startsOf(key).length > before) faults.push(`${key} ran again`);
  });
  return faults;
}

async function forEach<T>(left: T[], work: (one: T) => Promise<void>): Promise<void> {
  const worker = async (): Promise<void> => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) await work(next);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

/** Milliseconds past lease and sweep interval, for the passes themselves on a busy machine. */
const settleSlackMs = 5_000;
const lookMs = 100;

/** How many are still in progress when every one should have been settled. */
export async function untilSettled(
  { leaseMs, sweepMs }: { readonly leaseMs: number; readonly sweepMs: number },
  countInProgress: () => Promise<number>,
): Promise<number> {
  const untilMs = performance.now() + leaseMs + sweepMs + settleSlackMs;
  for (;;) {
    const count = await countInProgress();
    if (count === 0 || performance.now() > untilMs) return count;
    await delay(lookMs);
  }
}
