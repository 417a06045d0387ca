import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { path } from './exchange.ts';
import { body, scope } from './stores.ts';

/** As a batch of first requests leaves them. Gives back their keys. */
export async function reserveKeys(client: pg.Client, count: number): Promise<string[]> {
  const keys = Array.from({ length: count }, () => randomUUID());
  const text = `INSERT INTO oncegate.record (
  scope, key, attempt, epoch, instance, state, had_credentials, fingerprint, raw_digest, fingerprint_rule,
  deadline, reserved_at, method, path, request_id
)
SELECT
  '\\x${scope}', key, gen_random_uuid(), nextval('oncegate.epoch'), gen_random_uuid(), 'in_progress',
  true, sha256('digest'), sha256('raw'), 'v2:canonical', clock_timestamp() + interval '1 hour',
  clock_timestamp(), 'POST', '${path}', gen_random_uuid()
FROM unnest($1::text[]) AS key`;
  await client.query({ name: 'reserve', text, values: [keys] });
  return keys;
}

export async function answerKeys(
  client: pg.Client,
  keys: readonly string[],
  retentionMs: number,
): Promise<void> {
  const text = `UPDATE oncegate.record
SET
  state = 'completed',
  status = 201,
  headers = convert_to(repeat('h', 150), 'latin1'),
  body = ${body},
  completed_at = clock_timestamp(),
  retain_until = clock_timestamp() + $2::float8 * interval '1 millisecond'
WHERE scope = '\\x${scope}' AND key = ANY ($1::text[])`;
  await client.query({ name: 'answer', text, values: [keys, retentionMs] });
}

export interface Size {
  readonly tableBytes: number;
  readonly indexBytes: number;
  /** As the server's statistics have it. */
  readonly deadRows: number;
  readonly vacuums: number;
}

export async function sizeNow(client: pg.Client): Promise<Size> {
  const { rows } = await client.query<Size>(`SELECT
  pg_table_size('oncegate.record')::float8 AS "tableBytes",
  pg_indexes_size('oncegate.record')::float8 AS "indexBytes",
  pg_stat_get_dead_tuples('oncegate.record'::regclass)::float8 AS "deadRows",
  pg_stat_get_autovacuum_count('oncegate.record'::regclass)::float8 AS vacuums`);
  return rows[0] as Size;
}

/** What there is, written anew without gaps. */
export async function compact(client: pg.Client): Promise<void> {
  await client.query('VACUUM FULL oncegate.record');
}
