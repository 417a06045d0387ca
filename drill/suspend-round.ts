import { readFileSync } from 'node:fs';
import { ask } from '../test/helpers/client.ts';
import { countRecords } from '../test/helpers/records.ts';
import type { SidecarProcess } from '../test/helpers/sidecar.ts';
import { until } from '../test/helpers/until.ts';
import { persist, type Seen, tryOnce } from './call.ts';
import type { HoldingUpstream } from './holding-upstream.ts';
import { describe } from './load.ts';
import type { Start } from './logged-upstream.ts';
import { type Doubtful, release, unknownAmong } from './release.ts';

export interface Plan {
  /** Requests behind the one that the upstream holds. */
  readonly queued: number;
  /** Stopped once all of them surely are in the queue; else as soon as their records are there. */
  readonly settlesFirst: boolean;
  readonly letGo: 'answered while it sleeps' | 'answered after it woke';
  /** Of the key that the upstream holds, on the other sidecar. */
  readonly rerun: 'rerun done' | 'rerun under way';
}

export interface Scene {
  readonly upstream: HoldingUpstream;
  readonly databaseUrl: string;
  readonly sleeper: SidecarProcess;
  readonly other: SidecarProcess;
}

export interface Round {
  readonly number: number;
  readonly plan: Plan;
  /** The attempts of the one that slept. */
  readonly old: { readonly sentBefore: number; readonly sentAfterWaking: readonly string[] };
  /** What its clients got in the end. */
  readonly told: readonly string[];
  readonly calls: number;
  readonly answered: number;
  readonly faults: readonly string[];
}

const patienceMs = 20_000;

export async function play(scene: Scene, number: number, plan: Plan): Promise<Round> {
  const { upstream, databaseUrl, sleeper, other } = scene;
  const front = `round-${number}-front`;
  const behind = Array.from({ length: plan.queued }, (_, i) => `round-${number}-behind-${i}`);
  const keys = [front, ...behind];
  const faults: string[] = [];

  upstream.hold(front);
  const told: Promise<Seen>[] = [tryOnce(sleeper.dataUrl, front)];
  const answerFront = await upstream.held(front);
  told.push(...behind.map((key) => tryOnce(sleeper.dataUrl, key)));
  await until(
    'all are reserved',
    async () =>
      (await countRecords(databaseUrl, `state = 'in_progress' AND key LIKE 'round-${number}-%'`)) ===
      keys.length,
  );
  // One round trip through its event loop: what was reserved before is in the queue after it.
  if (plan.settlesFirst) await ask(`${sleeper.dataUrl}/`, { method: 'GET' });
  sleeper.kill('SIGSTOP');
  await until('it sleeps', () => stateOf(sleeper.child.pid ?? 0) === 'T');
  if (plan.letGo === 'answered while it sleeps') answerFront();

  const doubtful = await until('swept by the other', () => unknownAmong(databaseUrl, keys));
  const refused = await Promise.all(keys.map((key) => tryOnce(other.dataUrl, key)));
  for (const [i, seen] of refused.entries())
    if (seen.kind !== 'unknown') faults.push(`${keys[i]}: a retry of an unknown key got ${wordOf(seen)}`);
  await release(databaseUrl, keys);

  if (plan.rerun === 'rerun under way') upstream.hold(front);
  // The other has one connection too: what is held goes last.
  const rerun = await Promise.all(behind.map((key) => tryOnce(other.dataUrl, key)));
  const rerunFront = tryOnce(other.dataUrl, front);
  const answerRerun = plan.rerun === 'rerun under way' ? await upstream.held(front) : null;
  if (answerRerun === null) await rerunFront;

  const wokenAt = upstream.starts.length;
  sleeper.kill('SIGCONT');
  if (plan.letGo === 'answered after it woke') answerFront();
  // Its queue is served in order: once this one ran, everything before it had its chance.
  const probe = `round-${number}-probe`;
  const probed = await persist({ urls: [sleeper.dataUrl], key: probe, withinMs: patienceMs });
  if (probed.kind !== 'answered') faults.push(`${probe}: ${probed.kind}`);
  const seen = await Promise.all(told);
  answerRerun?.();
  rerun.unshift(await rerunFront);

  const after = upstream.starts.slice(wokenAt);
  const replays = await replay(scene, keys);
  faults.push(...rerunFaults(keys, rerun, replays), ...startFaults(upstream, doubtful));
  return {
    number,
    plan,
    old: judge(upstream, doubtful, after),
    told: seen.map(wordOf),
    calls: rerun.length + replays.length + 1,
    answered: [...rerun, ...replays, probed].filter(({ kind }) => kind === 'answered').length,
    faults,
  };
}

function judge(
  upstream: HoldingUpstream,
  doubtful: readonly Doubtful[],
  after: readonly Start[],
): Round['old'] {
  const attempts = new Set(doubtful.map(({ attempt }) => attempt));
  const isOld = ({ attempt }: Start): boolean => attempts.has(attempt);
  const all = doubtful.flatMap(({ key }) => upstream.startsOf(key)).filter(isOld);
  const late = after.filter(isOld);
  return {
    sentBefore: all.length - late.length,
    sentAfterWaking: late.map(({ key, attempt }) => `${key} by attempt ${attempt}`),
  };
}

/** Besides the attempt that slept each key was sent once, by the retry that took it over. */
function startFaults(upstream: HoldingUpstream, doubtful: readonly Doubtful[]): string[] {
  return doubtful.flatMap(({ key, attempt }) => {
    const others = upstream.startsOf(key).filter((start) => start.attempt !== attempt);
    return others.length === 1 ? [] : [`${key}: sent ${others.length} times after its release`];
  });
}

async function replay({ sleeper, other }: Scene, keys: readonly string[]): Promise<Seen[]> {
  return await Promise.all(
    [other, sleeper].flatMap(({ dataUrl }) => keys.map((key) => tryOnce(dataUrl, key))),
  );
}

function rerunFaults(keys: readonly string[], rerun: readonly Seen[], replays: readonly Seen[]): string[] {
  return keys.flatMap((key, i) => {
    const ran = rerun[i];
    if (ran?.kind !== 'answered' || ran.how !== 'executed')
      return [`${key}: released, and its retry got ${wordOf(ran)}`];
    return [replays[i], replays[i + keys.length]]
      .filter((seen) => seen?.kind !== 'answered' || seen.bytes !== ran.bytes)
      .map((seen) => `${key}: ran as ${ran.bytes}, replayed as ${wordOf(seen)}`);
  });
}

function wordOf(seen: Seen | undefined): string {
  if (seen === undefined) return 'nothing';
  if (seen.kind === 'answered') return seen.how;
  return seen.kind === 'refused' ? seen.code : describe(seen);
}

/** proc_pid_stat(5): the third field, after the name in parentheses. */
function stateOf(pid: number): string {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  return text.slice(text.lastIndexOf(')') + 2, text.lastIndexOf(')') + 3);
}
