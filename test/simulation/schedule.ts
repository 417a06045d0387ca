import { createHash } from 'node:crypto';
import { answerRefused, loopDone, requestDone } from '../../src/events.ts';
import { Callers } from './callers.ts';
import { Choices } from './choices.ts';
import { Clockwork } from './clockwork.ts';
import { Ledger } from './ledger.ts';
import { Mischief } from './mischief.ts';
import { SimServer } from './sim-server.ts';
import { drawSettings, policyOf, type Settings, sweepMs, type World } from './world.ts';

export interface Played {
  readonly violation: string | null;
  /** Empty unless asked for. */
  readonly trace: readonly string[];
  readonly seen: ReadonlySet<string>;
  readonly calls: number;
  readonly served: number;
  readonly steps: number;
}

export interface ScheduleOptions {
  readonly seed: number;
  /** Taken before anything is drawn from the seed. */
  readonly given?: readonly number[];
  readonly isTraced?: boolean;
}

/** Milliseconds of trouble; what was begun in it may come later still. */
const troubleMs = 45_000;
/** Milliseconds in which every call is answered and every attempt settled, once nothing goes wrong. */
const lastAnswerMs = 30_000;
/** A schedule has some hundred steps: one that never ends is a fault too. */
const maxSteps = 50_000;

/** One story: sidecars, callers, trouble, then peace, and the promises looked at all along. */
export async function playSchedule({ seed, given = [], isTraced = false }: ScheduleOptions): Promise<Played> {
  const choices = new Choices(seed, given);
  const clock = new Clockwork(() => choices.next());
  const seen = new Set<string>();
  const saw = (what: string) => void seen.add(what);
  const trace: string[] = [];
  const note = isTraced
    ? (line: string) => trace.push(`${clock.nowMs.toFixed(0).padStart(7)}  ${line}`)
    : () => {};
  const settings = drawSettings(choices);
  const ledger = new Ledger(settings, saw);
  const serverSkewMs = choices.between(0, 10_000_000);
  const server = new SimServer({
    nowMs: () => clock.nowMs + serverSkewMs,
    hasStandby: settings.hasStandby,
    onChange: (change) => {
      const { before, after, by } = change;
      note(
        `  ${by}: ${(after ?? before)?.key} of ${(after ?? before)?.requestId} ${before?.state ?? 'none'} → ${after?.state ?? 'none'}`,
      );
      ledger.changed(change);
    },
    onLost: (change) => {
      note(`  lost: ${change.by} of ${(change.after ?? change.before)?.requestId}`);
      ledger.lost(change);
    },
  });
  ledger.server = server;
  const world: World = { choices, clock, server, ledger, settings, policy: policyOf(settings), saw, note };
  if (isTraced) {
    note(JSON.stringify(settings));
    clock.onStep = ({ owner, label }) => {
      if (label !== 'timer' && label !== 'turn') note(`${owner?.name ?? '-'} ${label}`);
    };
  }
  const subscriptions = listen(saw, ledger);
  // Stacks of expected errors are half the time.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  clock.install();
  try {
    const { calls, served } = await play(world);
    const violation = ledger.violation?.message ?? null;
    return { violation, trace, seen, calls, served, steps: clock.steps };
  } finally {
    clock.uninstall();
    for (const end of subscriptions) end();
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** What the sidecars say of themselves. */
function listen(saw: World['saw'], ledger: Ledger): (() => void)[] {
  return [
    answerRefused.subscribe(({ attempt, kept }) => {
      saw('late answer refused');
      if (!kept) ledger.settled(attempt);
    }),
    requestDone.subscribe(({ verdict, instance }) => {
      // Whoever asks the store first opens an attempt, under an instance.
      if (verdict === 'replay' && instance === null) saw('replayed from memory');
    }),
    loopDone.subscribe(({ loop, counts }) => {
      // The first one was opened before the loops started.
      if (loop === 'lease' && counts['opened'] === 1) saw('lapsed lease');
    }),
  ];
}

async function play(world: World): Promise<{ calls: number; served: number }> {
  const { choices, clock, ledger, settings, note } = world;
  const mischief = new Mischief(world);
  const callers = new Callers(world, () => mischief.open);
  for (let left = choices.between(1, 3); left > 0; left -= 1) mischief.startSidecar();
  callers.invite(troubleMs);
  mischief.plan(troubleMs);
  const isRunning = () => ledger.violation === null && clock.steps < maxSteps;
  while (isRunning() && clock.nowMs < troubleMs && !isSettled(world, mischief, callers)) await clock.step();
  note('peace');
  mischief.end();
  choices.isCalm = true;
  while (isRunning() && !isSettled(world, mischief, callers) && clock.nowMs < healedByMs(settings))
    await clock.step();
  // Whoever called a moment ago is still to be answered.
  callers.isClosed = true;
  const answeredByMs = clock.nowMs + lastAnswerMs;
  while (isRunning() && !isSettled(world, mischief, callers) && clock.nowMs < answeredByMs)
    await clock.step();
  if (ledger.violation !== null) return callers;
  if (clock.steps >= maxSteps) ledger.fault('it never comes to an end');
  checkPeace(world, mischief, callers);
  return callers;
}

/** Milliseconds: what was sent late has arrived, a lease and a quiet sweeper are over, and so is every deadline. */
function healedByMs({ leaseMs }: Settings): number {
  const latestMs = 60_000;
  const deadlineMs = 20_000;
  return troubleMs + latestMs + 2 * leaseMs + deadlineMs + 2 * sweepMs;
}

function isSettled({ clock, server }: World, mischief: Mischief, callers: Callers): boolean {
  if (clock.outside > 0 || callers.pending.size > 0) return false;
  for (const { state } of server.rows.values()) if (state === 'in_progress') return false;
  return mischief.alive.every(
    ({ deps, isDraining }) => !isDraining && deps.attempts.size === 0 && deps.budget.heldBytes === 0,
  );
}

function checkPeace({ ledger, server }: World, mischief: Mischief, callers: Callers): void {
  for (const { state, requestId } of server.rows.values())
    if (state === 'in_progress') ledger.fault(`${requestId} is in progress for ever`);
  for (const requestId of callers.pending) ledger.fault(`${requestId} was never answered`);
  ledger.checkEvidence();
  for (const { name, deps } of mischief.answerable) {
    if (deps.attempts.size > 0) ledger.fault(`${name} still holds ${deps.attempts.size} attempts`);
    if (deps.budget.heldBytes !== 0) ledger.fault(`${name} still holds ${deps.budget.heldBytes} bytes`);
  }
}

export function hashOfTrace(trace: readonly string[]): string {
  return createHash('sha256').update(trace.join('\n')).digest('hex');
}
