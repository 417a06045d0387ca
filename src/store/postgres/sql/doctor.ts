/** What `oncegate doctor` asks. Every look reads only, and the server ends it when it takes long. */

/** Milliseconds. Each goes by an index or the catalog: only a locked table takes long. */
const lookMs = 3_000;

/**
 * One message, hence one transaction: the settings end with it, also behind a pooler that gives each transaction
 * another connection. Without BEGIN, so that an error leaves nothing open.
 */
export const readOnly = (look: string): string =>
  `SET LOCAL statement_timeout = ${lookMs}; SET LOCAL transaction_read_only = on; ${look}`;

export const readServer = `SELECT
  current_setting('server_version') AS "version",
  current_setting('server_version_num')::int AS "versionNumber",
  pg_backend_pid() AS "pid",
  pg_is_in_recovery() AS "inRecovery",
  current_setting('default_transaction_read_only') = 'on' AS "readOnly"`;

/**
 * Standbys by streaming only: a logical subscriber holds a slot that says so, and a base backup is over soon. A role
 * that may not see `state` still sees one row per sender.
 */
export const readDurability = `SELECT
  current_setting('synchronous_commit') AS "synchronousCommit",
  current_setting('fsync') AS "fsync",
  current_setting('full_page_writes') AS "fullPageWrites",
  current_setting('synchronous_standby_names') AS "synchronousStandbyNames",
  (
    SELECT count(*)::int
    FROM pg_stat_replication AS sender
    WHERE sender.state IS DISTINCT FROM 'backup'
      AND NOT EXISTS (
        SELECT
        FROM pg_replication_slots AS slot
        WHERE slot.active_pid = sender.pid
          AND slot.slot_type = 'logical'
      )
  ) AS "standbys"`;

/** pg_stat_database is open to every role; pg_stat_activity hides what others do. */
export const readConnections = `SELECT
  current_setting('max_connections')::int AS "max",
  current_setting('superuser_reserved_connections')::int
    + coalesce(current_setting('reserved_connections', true)::int, 0) AS "reserved",
  (SELECT sum(numbackends)::int FROM pg_stat_database) AS "inUse"`;

export const readClock = `SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS "serverMs"`;

/** What `serve` and `keys` do to each, and no more. */
const needed = {
  record: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  instance: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  audit: ['SELECT', 'INSERT'],
  late_answer: ['SELECT', 'INSERT', 'DELETE'],
  identity: ['SELECT', 'INSERT'],
  migration: ['SELECT'],
  epoch: ['USAGE'],
};

const neededRows = Object.entries(needed)
  .flatMap(([name, privileges]) => privileges.map((privilege) => `'${name}', '${privilege}'`))
  .map((row, i) => `(${i + 1}, ${row})`);

/** From the catalog, which a role without any right on the schema may read too. */
export const readPrivileges = `SELECT
  quote_ident(current_user) AS "role",
  quote_ident(current_database()) AS "database",
  EXISTS (SELECT FROM pg_namespace WHERE nspname = 'oncegate') AS "schemaExists",
  has_database_privilege(current_database(), 'CREATE') AS "mayCreateSchema"`;

export const readMissingPrivileges = `SELECT 0 AS "position", 'SCHEMA oncegate' AS "object", 'USAGE' AS "privilege"
FROM pg_namespace AS space
WHERE space.nspname = 'oncegate'
  AND NOT has_schema_privilege(space.oid, 'USAGE')
UNION ALL
SELECT
  needed.position,
  CASE class.relkind WHEN 'S' THEN 'SEQUENCE ' ELSE 'TABLE ' END || 'oncegate.' || class.relname,
  needed.privilege
FROM (VALUES ${neededRows.join(', ')}) AS needed(position, name, privilege)
JOIN pg_class AS class
  ON class.relname = needed.name
JOIN pg_namespace AS space
  ON space.oid = class.relnamespace AND space.nspname = 'oncegate'
WHERE NOT CASE class.relkind
  WHEN 'S' THEN has_sequence_privilege(class.oid, needed.privilege)
  ELSE has_table_privilege(class.oid, needed.privilege)
END
ORDER BY 1`;

export const readVacuum = `SELECT
  current_setting('autovacuum') = 'on' AND current_setting('track_counts') = 'on' AS "serverOn",
  coalesce(
    (
      SELECT option_value::boolean
      FROM pg_options_to_table(class.reloptions)
      WHERE option_name = 'autovacuum_enabled'
    ),
    true
  ) AS "tableOn",
  pg_stat_get_live_tuples(class.oid)::float8 AS "live",
  pg_stat_get_dead_tuples(class.oid)::float8 AS "dead",
  extract(epoch FROM clock_timestamp() - pg_stat_get_last_autovacuum_time(class.oid))::float8 * 1000
    AS "sinceAutovacuumMs",
  pg_total_relation_size(class.oid)::float8 AS "bytes"
FROM pg_class AS class
JOIN pg_namespace AS space
  ON space.oid = class.relnamespace
WHERE space.nspname = 'oncegate'
  AND class.relname = 'record'`;

/** By the index of what is in progress. */
export const countOverdue = `SELECT
  count(*)::int AS "count",
  extract(epoch FROM clock_timestamp() - min(deadline))::float8 * 1000 AS "oldestMs"
FROM oncegate.record
WHERE state = 'in_progress'
  AND deadline < statement_timestamp()`;

/** By the index of what waits for somebody. */
export const countUnknown = `SELECT
  count(*)::int AS "count",
  extract(epoch FROM clock_timestamp() - min(reserved_at))::float8 * 1000 AS "oldestMs"
FROM oncegate.record
WHERE state IN ('unknown', 'dead_letter')`;

/** Rows at most, read by the reaper's index: those kept longest from now, the newest where retention is one for all. */
const sampledRows = 1_000;

export const readTimes = `SELECT
  count(*)::int AS "count",
  percentile_cont(0.99) WITHIN GROUP (ORDER BY newest.ms) AS "p99Ms",
  max(newest.ms) AS "maxMs"
FROM (
  SELECT state, extract(epoch FROM completed_at - reserved_at)::float8 * 1000 AS ms
  FROM oncegate.record
  WHERE retain_until IS NOT NULL
  ORDER BY retain_until DESC
  LIMIT ${sampledRows}
) AS newest
WHERE newest.state = 'completed'`;

/** Tells probes from requests, whose ids have no space. */
export const probeRequestId = 'oncegate doctor';

export const removeProbe = `DELETE FROM oncegate.record
WHERE scope = $1
  AND key = $2
  AND request_id = '${probeRequestId}'`;

export const removeProbeInstance = `DELETE FROM oncegate.instance
WHERE id = $1::uuid`;

/** For people, where we could not. */
export const removeEveryProbe = `DELETE FROM oncegate.record WHERE request_id = '${probeRequestId}';`;
