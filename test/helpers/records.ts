import { query } from './postgres.ts';

/** A record as it stands in the table. */
export interface RecordRow {
  readonly key: string;
  readonly state: string;
  readonly status: number | null;
  readonly epoch: string;
  readonly attempt: string;
  readonly close_framed: boolean;
  readonly has_body: boolean;
  readonly last_error: string | null;
}

const columns = 'key, state, status, epoch, attempt, close_framed, body IS NOT NULL AS has_body, last_error';

/** undefined: there is none. Tests that use one key in two scopes look for themselves. */
export async function recordOf(databaseUrl: string, key: string): Promise<RecordRow | undefined> {
  const rows = await query(databaseUrl, `SELECT ${columns} FROM oncegate.record WHERE key = '${key}'`);
  return rows[0] as RecordRow | undefined;
}

export async function countRecords(databaseUrl: string, where = 'true'): Promise<number> {
  const [row] = await query(databaseUrl, `SELECT count(*)::int AS n FROM oncegate.record WHERE ${where}`);
  return row?.['n'] as number;
}

/** As if its retention had passed. */
export async function expire(databaseUrl: string, key: string): Promise<void> {
  await query(
    databaseUrl,
    `UPDATE oncegate.record SET retain_until = clock_timestamp() - interval '1 s' WHERE key = '${key}'`,
  );
}

/** As a failover to an asynchronous standby leaves it: what settled the record is gone, its reservation is not. */
export async function loseSettlement(databaseUrl: string, key: string): Promise<void> {
  await query(
    databaseUrl,
    `UPDATE oncegate.record SET state = 'in_progress', status = NULL, headers = NULL, body = NULL, completed_at = NULL,
      retain_until = NULL, last_error = NULL WHERE key = '${key}'`,
  );
}

/** As if its deadline had passed. */
export async function passDeadline(databaseUrl: string, key: string): Promise<void> {
  await query(
    databaseUrl,
    `UPDATE oncegate.record SET deadline = clock_timestamp() - interval '1 s' WHERE key = '${key}'`,
  );
}
