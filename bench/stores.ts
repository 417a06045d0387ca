import { join } from 'node:path';
import pg from 'pg';
import { root, type StartChild } from './child.ts';

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
SELECT 'POST /v1/charges', gen_random_uuid(), repeat('f', 64), clock_timestamp(), 201, repeat('h', 150), ${body}
FROM generate_series(1, ${keys})`,
    'VACUUM ANALYZE idempotency_key',
  ]);
}

export async function makeOncegateStore(url: string, keys: number, start: StartChild): Promise<void> {
  await start('migrate', [oncegateCommand, 'migrate', 'up'], { DATABASE_URL: url }).ended();
  await execute(url, [
    `INSERT INTO oncegate.record (
  scope, key, attempt, epoch, instance, state, had_credentials, fingerprint, raw_digest, fingerprint_rule,
  deadline, reserved_at, completed_at, retain_until, status, method, path, request_id, headers, body
)
SELECT
  sha256('bench'), gen_random_uuid(), gen_random_uuid(), nextval('oncegate.epoch'), gen_random_uuid(), 'completed',
  true, sha256('digest'), sha256('raw'), 'v1:canonical', clock_timestamp() + interval '40 seconds',
  clock_timestamp(), clock_timestamp(), clock_timestamp() + interval '1 day', 201, 'POST', '/v1/charges',
  gen_random_uuid(), convert_to(repeat('h', 150), 'latin1'), ${body}
FROM generate_series(1, ${keys})`,
    'VACUUM ANALYZE oncegate.record',
  ]);
}

const body = `convert_to(repeat('b', 320), 'latin1')`;

async function execute(url: string, statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}
