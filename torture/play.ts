import { setTimeout as delay } from 'node:timers/promises';
import { isServed } from './checker.ts';
import type { Call, RunFacts } from './facts.ts';
import type { Lane } from './lane.ts';
import { Notes } from './notes.ts';
import type { Plan } from './plan.ts';
import { deadlineMs, leaseMs, sweepMs } from './policies.ts';
import { rareIn } from './rare.ts';
import { reach } from './reach.ts';
import type { Replica } from './replica.ts';
import { strike } from './strike.ts';

export interface Played {
  /** null: the point was not reached, three times in a row. */
  readonly facts: RunFacts | null;
  readonly calls: readonly Call[];
  readonly rare: readonly string[];
  /** What became of the key that the fault met. */
  readonly outcome: string;
}

const tries = 3;
/** Past lease and sweep interval, for the passes themselves on a busy machine. */
const settleSlackMs = 5_000;
const retryPauseMs = 150;
const mostRetries = 30;
/** Beside the one that meets the fault, so that most calls of a run are ordinary ones. */
const ordinaryKeys = 4;

interface Other {
  readonly tenant: string;
  readonly key: string;
  readonly path: string;
}

/** One faulted run: ordinary calls, the fault at its point, healing, and everybody asks again. */
export async function play(lane: Lane, plan: Plan): Promise<Played> {
  const calls: Call[] = [];
  for (let turn = 0; turn < tries; turn += 1) {
    const notes = new Notes(lane, plan, turn);
    const facts = await playOnce(notes);
    calls.push(...notes.calls);
    if (facts === null) continue;
    const outcome =
      notes.looks.findLast((look) => look.tenant === 'a' && look.key === notes.key)?.state ?? 'none';
    return { facts, calls, rare: await rareIn(notes, facts), outcome };
  }
  return { facts: null, calls, rare: [], outcome: 'not reached' };
}

async function playOnce(notes: Notes): Promise<RunFacts | null> {
  const { lane, plan, key } = notes;
  const somebody = lane.replicas[plan.number % lane.replicas.length] as Replica;
  const others: Other[] = Array.from({ length: ordinaryKeys }, (_, i) => ({
    tenant: i % 2 === 0 ? 'a' : 'b',
    key: `ordinary-${key}-${i >> 1}`,
    path: '/plain',
  }));
  others.push({ tenant: 'b', key, path: plan.path });
  if (!(await areServed(notes, somebody, others))) return null;

  const struck = await reach(notes);
  if (struck === null) {
    notes.release();
    await notes.answered();
    return null;
  }
  const { victim } = struck;
  const at = Date.now();
  const other = lane.replicas.find((one) => one !== victim) ?? victim;
  if (plan.hasDuplicate) notes.ask({ replica: other, tenant: 'a', key });
  const storeCut = await strike(struck);
  if (plan.answersDuring) notes.release();
  await heal(notes, victim);
  notes.release();
  const healedAt = Date.now();
  const stillInProgress = await settled(notes);
  await notes.answered();
  await askAgain(notes, others);
  const { action, point } = plan;
  const fault = { point: point.name, action, replica: victim.index, at, healedAt, storeCut };
  await notes.look();
  return {
    run: plan.number,
    fault,
    starts: lane.upstream.startsOf(plan.number),
    calls: notes.calls,
    looks: notes.looks,
    freed: await notes.freed(),
    stillInProgress,
    secret: notes.secret,
  };
}

/** Lines as they were, and every sidecar that is gone started again. */
async function heal({ lane, plan }: Notes, victim: Replica): Promise<void> {
  // Half a request that was never taken off our hands arrives late, or never.
  if (plan.point.site.kind === 'upstream line' && plan.isLong) victim.lines.upstream.cutAll();
  victim.lines.upstream.lift();
  victim.lines.clients.lift();
  if (plan.point.site.kind === 'drain' && plan.action !== 'kill') await victim.exited();
  for (const replica of lane.replicas) if (!replica.isRunning) await replica.start();
}

/** After a run that was given up, wherever that was: no line is cut, and every sidecar is a new one. */
export async function mend({ replicas, pair }: Lane): Promise<void> {
  pair?.mend();
  for (const replica of replicas) {
    await replica.kill('SIGKILL');
    for (const line of Object.values(replica.lines)) {
      line.cutAll();
      line.refuse(false);
      line.lift();
      line.resume();
      line.shape({ sliceBytes: 0, delayMs: 0 });
    }
    await replica.start();
  }
}

/** Gives back what is in progress when nothing should be any more. */
async function settled({ lane }: Notes): Promise<string[]> {
  // A sidecar that got no processor for too long takes that for an outage of all, and waits for the deadline.
  const untilMs = performance.now() + Math.max(leaseMs, deadlineMs) + sweepMs + settleSlackMs;
  for (;;) {
    const { rows } = await lane.database.query<{ id: string }>(
      `SELECT tenant || ' ' || key AS id FROM oncegate.record WHERE state = 'in_progress'`,
    );
    if (rows.length === 0 || performance.now() > untilMs) return rows.map(({ id }) => id);
    await delay(50);
  }
}

/** As good clients do: the key that met the fault until there is an end to it, then all of them on every replica. */
async function askAgain(notes: Notes, others: readonly Other[]): Promise<void> {
  const { lane, plan, key } = notes;
  const main = { tenant: 'a', key, path: plan.path };
  const first = lane.replicas[plan.victim] as Replica;
  let end = await notes.ask({ ...main, replica: first }).done;
  for (let turn = 0; turn < mostRetries && !isEnd(end); turn += 1) {
    await delay(retryPauseMs);
    end = await notes.ask({ ...main, replica: first }).done;
  }
  const all = isServed(end) ? [...others, main] : others;
  for (const replica of lane.replicas)
    await Promise.all(all.map((other) => notes.ask({ ...other, replica }).done));
  // What was refused while a line was cut runs now.
  if (notes.calls.some((call) => call.key === notes.newKey))
    await notes.ask({ replica: first, tenant: 'a', key: notes.newKey, path: '/plain' }).done;
  const isKept = isServed(end) && plan.path !== '/brief';
  const reused = isKept && plan.number % 2 === 0 ? main : (others[0] as Other);
  await notes.ask({ ...reused, replica: first, body: 'differs' }).done;
}

/** Ordinary calls before anything happens; what the run before did to the lane may take a moment to pass. */
async function areServed(notes: Notes, replica: Replica, all: readonly Other[]): Promise<boolean> {
  let left = [...all];
  for (let turn = 0; turn < mostRetries; turn += 1) {
    const seen = await Promise.all(left.map((other) => notes.ask({ ...other, replica }).done));
    left = left.filter((_, i) => !isServed(seen[i] as Call));
    if (left.length === 0) return true;
    await delay(retryPauseMs);
  }
  return false;
}

function isEnd({ how, code }: Call): boolean {
  return how === 'executed' || how === 'replayed' || code === 'outcome_unknown';
}
