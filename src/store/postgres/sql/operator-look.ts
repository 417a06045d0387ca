import { waitingStates } from '../../../core/record.ts';
import { settledLookedAt } from '../../operator.ts';
import { readIdentity } from './schema.ts';
import { statement } from './statement.ts';

const ms = (time: string): string => `extract(epoch FROM ${time})::float8 * 1000`;

/** In the order of operator-rows.ts. */
const columns = `record.scope, record.key, record.attempt, record.epoch, record.state, record.method, record.path,
  record.tenant, record.request_id, record.status, record.last_error, record.had_credentials, record.dispatched,
  ${ms('clock_timestamp()')}, ${ms('record.reserved_at')}, ${ms('record.deadline')}, ${ms('record.completed_at')},
  ${ms('record.retain_until')}, ${ms('record.blocked_until')}, octet_length(record.body), record.instance,
  EXISTS (
    SELECT
    FROM oncegate.instance AS instance
    WHERE instance.id = record.instance
      AND instance.lease_until > clock_timestamp()
  )`;

const waiting = waitingStates.map((state) => `'${state}'`).join(', ');
const isWaiting = `record.state IN (${waiting})`;
const isRunning = `record.state = 'in_progress'`;

/** Not clock_timestamp(): being volatile it is no index condition. */
const listed = `record.state = ANY ($1::text[]::oncegate.state[])
  AND record.reserved_at <= statement_timestamp() - $2::float8 * interval '1 millisecond'
  AND ($3::text IS NULL OR record.tenant = $3)
  AND ($4::text IS NULL OR record.path = $4)`;

export const listWaiting = statement(
  'list_waiting',
  `SELECT ${columns}
FROM oncegate.record AS record
WHERE ${isWaiting}
  AND ${listed}
ORDER BY record.reserved_at
LIMIT $5`,
);

export const listRunning = statement(
  'list_running',
  `SELECT ${columns}
FROM oncegate.record AS record
WHERE ${isRunning}
  AND ${listed}
ORDER BY record.deadline
LIMIT $5`,
);

export const listSettled = statement(
  'list_settled',
  `SELECT ${columns}
FROM (
  SELECT *
  FROM oncegate.record
  WHERE retain_until IS NOT NULL
  ORDER BY retain_until DESC
  LIMIT ${settledLookedAt}
) AS record
WHERE ${listed}
ORDER BY record.retain_until DESC
LIMIT $5`,
);

/** As core/record.ts's hashOf. */
const named = (table: string): string =>
  `($1::text IS NULL OR starts_with(encode(sha256(${table}.scope || convert_to(${table}.key, 'UTF8')), 'hex'), $1))
    AND ($2::text IS NULL OR ${table}.key = $2)`;

const placed = `($3::text IS NULL OR record.tenant = $3)
    AND ($4::text IS NULL OR record.path = $4)
    AND ($5::text IS NULL OR record.method = $5)`;

/** Three small sets, each by its index: what waits, what runs, what people or late answers have to do with. */
export const findNamed = statement(
  'find_named',
  `SELECT ${columns}
FROM (
  SELECT record.scope, record.key
  FROM oncegate.record AS record
  WHERE ${isWaiting}
    AND ${named('record')}
  UNION
  SELECT record.scope, record.key
  FROM oncegate.record AS record
  WHERE ${isRunning}
    AND ${named('record')}
  UNION
  SELECT audit.scope, audit.key
  FROM oncegate.audit AS audit
  WHERE ${named('audit')}
  UNION
  SELECT late.scope, late.key
  FROM oncegate.late_answer AS late
  WHERE ${named('late')}
) AS found
JOIN oncegate.record AS record
  ON record.scope = found.scope AND record.key = found.key
WHERE ${placed}
ORDER BY record.reserved_at
LIMIT $6`,
);

/** Apart, so that the primary key's index can be read instead of the table with its answers. */
export const findAnywhere = statement(
  'find_anywhere',
  `WITH found AS MATERIALIZED (
  SELECT record.scope, record.key
  FROM oncegate.record AS record
  WHERE ${named('record')}
)
SELECT ${columns}
FROM found
JOIN oncegate.record AS record
  ON record.scope = found.scope AND record.key = found.key
WHERE ${placed}
ORDER BY record.reserved_at
LIMIT $6`,
);

export const viewAt = statement(
  'view',
  `SELECT ${columns}
FROM oncegate.record AS record
WHERE record.scope = $1
  AND record.key = $2`,
);

export const countRoughly = statement(
  'count_roughly',
  `SELECT greatest(class.reltuples, pg_stat_get_live_tuples(class.oid))::float8
FROM pg_class AS class
WHERE class.oid = 'oncegate.record'::regclass`,
);

export const identity = statement('identity', readIdentity);
