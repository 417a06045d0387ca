import { warningsShown } from './statement.ts';

/** Statements of the migration runner and of the start-up checks; they run a few times in a process's life. */

/** Held to the end of the transaction: one runner at a time, and nothing to clean up when it dies. */
export const lockMigrations = `SELECT pg_advisory_xact_lock(hashtext('oncegate.migration'))`;

/** After the runner's own lock, for which it may wait. The warnings tell whether the standby has the commit. */
export const boundMigrationLocks = `SET LOCAL lock_timeout = '1s'; SET LOCAL client_min_messages = warning`;

export const createMigrationTable = `CREATE SCHEMA IF NOT EXISTS oncegate;
CREATE TABLE IF NOT EXISTS oncegate.migration (
  number     integer     PRIMARY KEY,
  title      text        NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)`;

export const migrationTableExists = `SELECT to_regclass('oncegate.migration') IS NOT NULL AS there`;

export const appliedMigrations = `SELECT number FROM oncegate.migration ORDER BY number`;

export const recordMigration = `INSERT INTO oncegate.migration (number, title) VALUES ($1, $2)`;

/** The first instance on a store sets its identity; all others compare. */
export const setIdentityOnce = `INSERT INTO oncegate.identity (settings)
SELECT $1::text FROM ${warningsShown} AS shown
ON CONFLICT DO NOTHING`;

export const readIdentity = `SELECT settings FROM oncegate.identity`;

/** Against every INSERT and UPDATE of the table, and no read. */
export const lockInstances = `LOCK TABLE oncegate.instance IN EXCLUSIVE MODE`;

/** Those whose lease ends last come first. */
export const liveInstances = `SELECT id, ceil(extract(epoch FROM lease_until - clock_timestamp()))::int AS seconds
FROM oncegate.instance
WHERE lease_until > clock_timestamp()
ORDER BY lease_until DESC, id`;

export const replaceIdentity = `INSERT INTO oncegate.identity (settings) VALUES ($1)
ON CONFLICT (only_row) DO UPDATE SET settings = excluded.settings, set_at = clock_timestamp()`;
