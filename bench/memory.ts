import { setTimeout as delay } from 'node:timers/promises';
import { type Bench, type Entrant, send } from './measure.ts';
import { canMeasureProcesses, type Memory, memoryOf } from './processes.ts';

/** What starting leaves to be done is done by then. */
const settleMs = 1_000;

/** Before its first request. null: it cannot be measured here, or there is no process. */
export async function startMemory({ child }: Pick<Entrant, 'child'>): Promise<number | null> {
  if (!canMeasureProcesses || child === null) return null;
  await delay(settleMs);
  return memoryOf(child.pid).residentMb;
}

/** Milliseconds after which an idle process has given back what starting left behind. */
const idleMs = 40_000;

/** Of a process that has had nothing to do since `startedMs`. */
export async function idleMemory(
  { child }: Pick<Entrant, 'child'>,
  startedMs: number,
): Promise<number | null> {
  await delay(Math.max(0, startedMs + idleMs - performance.now()));
  return memoryNow(child)?.residentMb ?? null;
}

export function peakMemory({ child }: Pick<Entrant, 'child'>): number | null {
  return memoryNow(child)?.peakMb ?? null;
}

/** As the goal has it. */
export const crowdConnections = 256;

/** Enough that each connection has been busy many times. */
const crowdRequests = 10_000;

/** The most that it has ever held, after many clients at once too. */
export async function memoryUnderCrowd(
  bench: Bench,
  { port, traffic, child }: Entrant,
): Promise<number | null> {
  await send(bench, { port, traffic, connections: crowdConnections, requests: crowdRequests });
  return memoryNow(child)?.peakMb ?? null;
}

function memoryNow(child: Entrant['child']): Memory | null {
  return canMeasureProcesses && child !== null ? memoryOf(child.pid) : null;
}
