import { type CommitSettings, mayLoseBy } from './durability.ts';
import type { InspectSession } from './inspect-session.ts';
import { readClock, readConnections, readDurability, readServer } from './sql/doctor.ts';

export interface ServerFacts {
  readonly version: string;
  /** 180004 is 18.4. */
  readonly versionNumber: number;
  /** The process that answers now. */
  readonly pid: number;
  readonly inRecovery: boolean;
  readonly readOnly: boolean;
}

/** As the server gives them. */
export interface DurabilityRow extends CommitSettings {
  readonly fullPageWrites: string;
  /** Streaming from this server now, in whatever mode. */
  readonly standbys: number;
}

export interface DurabilityFacts extends DurabilityRow {
  /** What may lose an acknowledged commit with these settings. */
  readonly mayLoseBy: 'crash' | 'failover' | null;
}

export interface ConnectionFacts {
  readonly max: number;
  /** Of these, kept for superusers and the like. */
  readonly reserved: number;
  readonly inUse: number;
}

export interface ClockFacts {
  /** The server's clock less ours, as of the middle of the round trip. */
  readonly aheadMs: number;
  readonly roundTripMs: number;
}

export async function inspectServer(session: InspectSession): Promise<ServerFacts> {
  return one(await session.look<ServerFacts>(readServer));
}

export async function inspectDurability(session: InspectSession): Promise<DurabilityFacts> {
  const row = one(await session.look<DurabilityRow>(readDurability));
  return { ...row, mayLoseBy: mayLoseBy(row) };
}

export async function inspectConnections(session: InspectSession): Promise<ConnectionFacts> {
  return one(await session.look<ConnectionFacts>(readConnections));
}

export async function inspectClock(session: InspectSession): Promise<ClockFacts> {
  // In this order: a pause between the two lengthens the round trip, and so what we allow for.
  const startMs = performance.now();
  const sentMs = Date.now();
  const { serverMs } = one(await session.look<{ serverMs: number }>(readClock));
  const roundTripMs = performance.now() - startMs;
  return { aheadMs: serverMs - (sentMs + roundTripMs / 2), roundTripMs };
}

/** These looks have no FROM that could be empty. */
function one<T>(rows: readonly T[]): T {
  return rows[0] as T;
}
