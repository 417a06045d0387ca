import type { InspectSession } from './inspect-session.ts';
import { countOverdue, countUnknown, readTimes, readVacuum } from './sql/doctor.ts';

export interface VacuumFacts {
  readonly serverOn: boolean;
  readonly tableOn: boolean;
  /** Rows, as the server's statistics have them. */
  readonly live: number;
  readonly dead: number;
  /** null: autovacuum has not come yet. */
  readonly sinceAutovacuumMs: number | null;
  /** With indexes and what is stored out of line. */
  readonly bytes: number;
}

export interface CountFacts {
  readonly count: number;
  /** Age of the oldest; null where there is none. */
  readonly oldestMs: number | null;
}

export interface TimeFacts {
  /** Completed records that were looked at. */
  readonly count: number;
  /** From reservation to completion; null where there is none. */
  readonly p99Ms: number | null;
  readonly maxMs: number | null;
}

/** null: there is no table. */
export async function inspectVacuum(session: InspectSession): Promise<VacuumFacts | null> {
  return (await session.look<VacuumFacts>(readVacuum))[0] ?? null;
}

/** In progress past their deadline. */
export async function inspectOverdue(session: InspectSession): Promise<CountFacts> {
  return (await session.look<CountFacts>(countOverdue))[0] as CountFacts;
}

/** null: too many records to count within the time a look may take. */
export async function inspectUnknown(session: InspectSession): Promise<CountFacts | null> {
  try {
    return (await session.look<CountFacts>(countUnknown))[0] as CountFacts;
  } catch (error) {
    if ((error as { code?: unknown }).code === '57014') return null;
    throw error;
  }
}

export async function inspectTimes(session: InspectSession): Promise<TimeFacts> {
  return (await session.look<TimeFacts>(readTimes))[0] as TimeFacts;
}
