import type pg from 'pg';

/** What the server has written so far, all databases together. Both move at once, unlike pg_stat_*, which lag by seconds. */
const look = `SELECT
  pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 AS "walBytes",
  pg_snapshot_xmax(pg_current_snapshot())::text::float8 AS transactions`;

export interface StoreCounters {
  readonly walBytes: number;
  /** Transactions that wrote something: each has waited for its commit to be durable. */
  readonly transactions: number;
}

export async function readStoreCounters(client: pg.Client): Promise<StoreCounters> {
  const { rows } = await client.query<StoreCounters>(look);
  return rows[0] as StoreCounters;
}
