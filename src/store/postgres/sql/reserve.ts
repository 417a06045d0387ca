import { fromStates, lockTimeout, statement } from './statement.ts';

/**
 * Milliseconds. A reservation only ever waits for another reservation of the same key that is about to commit;
 * longer than this and its neighbours in the batch go without it.
 */
const reserveLockMs = 200;

/** One row per item that is now ours; an item that gets none reads the record with `read`. */
export const reserve = statement(
  'reserve',
  `INSERT INTO oncegate.record (
  scope, key, attempt, epoch, instance, state, had_credentials, fingerprint, raw_digest, fingerprint_rule,
  deadline, reserved_at, tenant, method, path, request_id, dispatched
)
SELECT
  item.scope, item.key, item.attempt::uuid, nextval('oncegate.epoch'), item.instance::uuid, 'in_progress',
  item.had_credentials, item.fingerprint, item.raw_digest, item.fingerprint_rule,
  clock_timestamp() + item.deadline_ms * interval '1 millisecond', clock_timestamp(),
  item.tenant, item.method, item.path, item.request_id, CASE WHEN item.marks THEN false END
FROM ${lockTimeout(reserveLockMs)} AS bounded
CROSS JOIN unnest(
  $1::bytea[], $2::text[], $3::text[], $4::text[], $5::boolean[], $6::bytea[], $7::bytea[], $8::text[],
  $9::float8[], $10::text[], $11::text[], $12::text[], $13::text[], $14::boolean[]
) AS item(
  scope, key, attempt, instance, had_credentials, fingerprint, raw_digest, fingerprint_rule,
  deadline_ms, tenant, method, path, request_id, marks
)
ON CONFLICT (scope, key) DO NOTHING
RETURNING attempt, epoch`,
);

/**
 * takeOverIfUnchanged: compare-and-set on the previous attempt, epoch and state, so that a delayed duplicate finds them gone, and of
 * two in one batch that take over the same record at most one does. A completed record may be taken over only past its retention.
 * An item that gets no row back reads the record with `read`.
 */
export const takeOver = statement(
  'take_over',
  `UPDATE oncegate.record AS record
SET
  attempt = item.attempt::uuid,
  epoch = nextval('oncegate.epoch'),
  instance = item.instance::uuid,
  state = 'in_progress',
  had_credentials = item.had_credentials,
  fingerprint = item.fingerprint,
  raw_digest = item.raw_digest,
  fingerprint_rule = item.fingerprint_rule,
  deadline = clock_timestamp() + item.deadline_ms * interval '1 millisecond',
  reserved_at = clock_timestamp(),
  completed_at = NULL,
  retain_until = NULL,
  blocked_until = NULL,
  status = NULL,
  close_framed = false,
  tenant = item.tenant,
  method = item.method,
  path = item.path,
  request_id = item.request_id,
  dispatched = CASE WHEN item.marks THEN false END,
  last_error = NULL,
  headers = NULL,
  body = NULL
FROM ${lockTimeout(reserveLockMs)} AS bounded
CROSS JOIN unnest(
  $1::bytea[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::boolean[], $9::bytea[],
  $10::bytea[], $11::text[], $12::float8[], $13::text[], $14::text[], $15::text[], $16::text[], $17::boolean[]
) AS item(
  scope, key, previous_attempt, previous_epoch, previous_state, attempt, instance, had_credentials, fingerprint,
  raw_digest, fingerprint_rule, deadline_ms, tenant, method, path, request_id, marks
)
WHERE record.scope = item.scope
  AND record.key = item.key
  AND record.attempt = item.previous_attempt::uuid
  AND record.epoch = item.previous_epoch::bigint
  AND record.state = item.previous_state::oncegate.state
  AND record.state IN (${fromStates('in_progress', 'retry')})
  AND (record.state = 'failed_retryable' OR record.retain_until <= clock_timestamp())
  AND (record.blocked_until IS NULL OR record.blocked_until <= clock_timestamp())
RETURNING record.attempt, record.epoch`,
);

/**
 * The acknowledged write that makes a read-back count: a row can be visible and yet not be on the synchronous
 * standby, when the backend that wrote it was cut in its wait.
 */
export const confirm = statement(
  'confirm',
  `UPDATE oncegate.record AS record
SET attempt = record.attempt
FROM ${lockTimeout(reserveLockMs)} AS bounded
CROSS JOIN unnest($1::bytea[], $2::text[], $3::text[], $4::text[]) AS item(scope, key, attempt, state)
WHERE record.scope = item.scope
  AND record.key = item.key
  AND record.attempt = item.attempt::uuid
  AND record.state = item.state::oncegate.state
RETURNING record.attempt, record.epoch, extract(epoch FROM record.retain_until)::float8 * 1000 AS retain_until_ms`,
);

/**
 * markDispatchedIfHeld: from here on the attempt may have been sent. Whoever gets no row back must not send: the sweeper has
 * released the record, or somebody else moved it.
 */
export const markDispatched = statement(
  'mark_dispatched',
  `UPDATE oncegate.record AS record
SET dispatched = true
FROM ${lockTimeout(reserveLockMs)} AS bounded
CROSS JOIN unnest($1::bytea[], $2::text[], $3::text[]) AS item(scope, key, attempt)
WHERE record.scope = item.scope
  AND record.key = item.key
  AND record.attempt = item.attempt::uuid
  -- As text: else the index of what is in progress would do, and a plan that is kept might walk all of it.
  AND record.state::text = 'in_progress'
  AND record.dispatched IS FALSE
RETURNING record.attempt`,
);
