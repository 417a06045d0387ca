import { fromStates, lockTimeout, statement, warningsShown } from './statement.ts';

/** Milliseconds. A loop that meets a locked row leaves it for its next pass. */
const loopLockMs = 100;

/** Candidates only; `sweep` compares again. A lapsed lease never lives again and a deadline never moves. */
export const findSweepable = statement(
  'find_sweepable',
  `SELECT record.scope, record.key, record.attempt, record.method, record.path, record.request_id,
  record.instance, record.deadline <= clock_timestamp() AS is_overdue, live.id IS NULL AS is_lease_over,
  CASE WHEN record.dispatched IS FALSE THEN 'failed_retryable' ELSE 'unknown' END AS to_state
FROM oncegate.record AS record
LEFT JOIN oncegate.instance AS live
  ON live.id = record.instance
  AND live.lease_until > clock_timestamp()
WHERE record.state = 'in_progress'
  AND (record.deadline <= clock_timestamp() OR live.id IS NULL)
ORDER BY record.deadline
LIMIT $1`,
);

/** markUnknownIfLeaseOver: never frees a key, for its request may have run. Skips unmarked records; releaseUndispatched takes those. */
export const sweep = statement(
  'sweep',
  `UPDATE oncegate.record AS record
SET
  state = 'unknown',
  last_error = item.reason
FROM ${lockTimeout(loopLockMs)} AS bounded
CROSS JOIN unnest($1::bytea[], $2::text[], $3::text[], $4::text[]) AS item(scope, key, attempt, reason)
WHERE record.scope = item.scope
  AND record.key = item.key
  AND record.attempt = item.attempt::uuid
  AND record.state IN (${fromStates('unknown', 'sweeper')})
  AND record.dispatched IS NOT FALSE
RETURNING record.attempt`,
);

/**
 * releaseIfUndispatched: after this its mark finds no record in progress, so it can never be sent. A mark that came first is seen
 * here, also when we waited for its lock. A day of retention, as for what was never forwarded.
 */
export const releaseUndispatched = statement(
  'release_undispatched',
  `UPDATE oncegate.record AS record
SET
  state = 'failed_retryable',
  retain_until = clock_timestamp() + interval '1 day',
  last_error = item.reason,
  dispatched = NULL
FROM ${lockTimeout(loopLockMs)} AS bounded
CROSS JOIN unnest($1::bytea[], $2::text[], $3::text[], $4::text[]) AS item(scope, key, attempt, reason)
WHERE record.scope = item.scope
  AND record.key = item.key
  AND record.attempt = item.attempt::uuid
  AND record.state IN (${fromStates('failed_retryable', 'sweeper')})
  AND record.dispatched IS FALSE
RETURNING record.attempt`,
);

/**
 * For its own attempt, which knows that it sent nothing: so from the states that a release of the attempt itself may leave, and not those
 * of a sweeper. After an outage longer than the deadline another instance may have called the record unknown before we come. The
 * instance is compared, too. A day of retention: a client that was told 503 has long retried by then.
 */
export const releaseNeverSent = statement(
  'release_never_sent',
  `UPDATE oncegate.record AS record
SET
  state = 'failed_retryable',
  retain_until = clock_timestamp() + interval '1 day',
  last_error = 'reserved but never forwarded',
  dispatched = NULL
FROM ${lockTimeout(loopLockMs)} AS bounded
CROSS JOIN unnest($1::bytea[], $2::text[], $3::text[], $4::text[]) AS item(scope, key, attempt, instance)
WHERE record.scope = item.scope
  AND record.key = item.key
  AND record.attempt = item.attempt::uuid
  AND record.instance = item.instance::uuid
  AND record.state IN (${fromStates('failed_retryable', 'attempt')})
RETURNING record.attempt`,
);

/** Not clock_timestamp(): being volatile it is no index condition, and every pass would read the whole index. */
export const findReapable = statement(
  'find_reapable',
  `SELECT record.scope, record.key, record.attempt
FROM oncegate.record AS record
WHERE record.retain_until <= statement_timestamp()
ORDER BY record.retain_until
LIMIT $1`,
);

/** The state and the time are compared again: the key may have been taken over since it was found. */
export const reap = statement(
  'reap',
  `DELETE FROM oncegate.record AS record
USING ${lockTimeout(loopLockMs)} AS bounded
CROSS JOIN unnest($1::bytea[], $2::text[], $3::text[]) AS item(scope, key, attempt)
WHERE record.scope = item.scope
  AND record.key = item.key
  AND record.attempt = item.attempt::uuid
  AND record.state IN ('completed', 'failed_retryable')
  AND record.retain_until <= clock_timestamp()
RETURNING record.attempt`,
);

/** Without its row an instance has no live lease, which is what a day past its end it has anyway. */
export const reapInstances = statement(
  'reap_instances',
  `DELETE FROM oncegate.instance
USING ${warningsShown} AS shown
WHERE lease_until < clock_timestamp() - interval '1 day'`,
);
