import { join } from 'node:path';
import pg from 'pg';
import { createMemos } from '../src/core/memos.ts';
import { scopeAt } from '../src/core/scope.ts';
import { root, type StartChild } from './child.ts';
import { path } from './exchange.ts';

export const oncegateCommand = join(root, 'dist/cli/oncegate.js');

/** Stores as they are after a while: with keys in them, and known to the planner, as autovacuum sees to within a minute. */

/** The table of statement-per-request.ts. */
export async function makeStatementStore(url: string, keys: number): Promise<void> {
  await execute(url, [
    `CREATE TABLE idempotency_key (
  scope        text        NOT NULL,
  key          text        NOT NULL,
  fingerprint  text        NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  completed_at timestamptz,
  status       smallint,
  headers      text,
  body         bytea,
  PRIMARY KEY (scope, key)
)`,
    `INSERT INTO idempotency_key (scope, key, fingerprint, completed_at, status, headers, body)
SELECT 'POST ${path}', gen_random_uuid(), repeat('f', 64), clock_timestamp(), 201, repeat('h', 150), ${body}
FROM generate_series(1, ${keys})`,
    'VACUUM ANALYZE idempotency_key',
  ]);
}

/** The table of in-app-library.ts. */
export async function makeLibraryStore(url: string, keys: number): Promise<void> {
  await execute(url, [
    `CREATE TABLE idempotency_entry (
  key        text        PRIMARY KEY,
  value      text        NOT NULL,
  expires_at timestamptz NOT NULL
)`,
    `INSERT INTO idempotency_entry (key, value, expires_at)
SELECT 'node-idempotency:POST:${path}:' || gen_random_uuid(), repeat('v', 700), clock_timestamp() + interval '1 day'
FROM generate_series(1, ${keys})`,
    'VACUUM ANALYZE idempotency_entry',
  ]);
}

export async function makeOncegateStore(url: string, keys: number, start: StartChild): Promise<void> {
  await start('migrate', [oncegateCommand, 'migrate', 'up'], { env: { DATABASE_URL: url } }).ended();
  await fillOncegateStore(url, keys);
  await execute(url, ['VACUUM ANALYZE oncegate.record']);
}

/** Of the requests that the clients send. In another scope the new keys would have a corner of the index to themselves. */
export const scope = scopeAt(createMemos(), { tenant: null, method: 'POST', path }, [
  'tenant',
  'endpoint',
]).toString('hex');

/** Throws unless what Oncegate has stored stands among what was filled in. */
export async function checkOneScope(url: string): Promise<void> {
  await execute(url, [
    `DO $$
BEGIN
  IF EXISTS (SELECT FROM oncegate.record WHERE scope < '\\x${scope}' OR scope > '\\x${scope}') THEN
    RAISE EXCEPTION 'the store was filled in another scope than that of the requests';
  END IF;
END $$`,
  ]);
}

/** Answered keys. `retainUntil` is SQL, in which `n` counts them. */
export async function fillOncegateStore(
  url: string,
  keys: number,
  retainUntil = `clock_timestamp() + interval '1 day'`,
): Promise<void> {
  await execute(url, [
    `INSERT INTO oncegate.record (
  scope, key, attempt, epoch, instance, state, had_credentials, fingerprint, raw_digest, fingerprint_rule,
  deadline, reserved_at, completed_at, retain_until, status, method, path, request_id, headers, body
)
SELECT
  '\\x${scope}', gen_random_uuid(), gen_random_uuid(), nextval('oncegate.epoch'), gen_random_uuid(), 'completed',
  true, sha256('digest'), sha256('raw'), 'v2:canonical', clock_timestamp() + interval '40 seconds',
  clock_timestamp(), clock_timestamp(), ${retainUntil}, 201, 'POST', '${path}',
  gen_random_uuid(), convert_to(repeat('h', 150), 'latin1'), ${body}
FROM generate_series(1, ${keys}) AS n`,
  ]);
}

export const body = `convert_to(repeat('b', 320), 'latin1')`;

export async function execute(url: string, statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}
