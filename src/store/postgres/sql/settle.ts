import { fromStates, lockTimeout, statement } from './statement.ts';

/** Milliseconds. Short: a row locked by somebody else must not hold its neighbours; it then goes alone and waits. */
const settleLockMs = 100;

/**
 * completeIfHeld, releaseIfHeld and markUnknownIfHeld in one statement, so that all of them share a commit.
 * An item that gets no row back did not hold the record in a state from which this move is legal.
 */
export const settle = statement(
  'settle',
  `UPDATE oncegate.record AS record
SET
  state = item.state::oncegate.state,
  status = item.status,
  headers = item.headers,
  body = item.body,
  close_framed = item.close_framed,
  last_error = item.last_error,
  dispatched = NULL,
  completed_at = CASE WHEN item.state = 'completed' THEN clock_timestamp() END,
  retain_until = clock_timestamp() + item.retention_ms * interval '1 millisecond'
FROM ${lockTimeout(settleLockMs)} AS bounded
CROSS JOIN unnest(
  $1::bytea[], $2::text[], $3::text[], $4::text[], $5::float8[], $6::bytea[], $7::bytea[], $8::boolean[],
  $9::text[], $10::float8[]
) AS item(scope, key, attempt, state, status, headers, body, close_framed, last_error, retention_ms)
WHERE record.scope = item.scope
  AND record.key = item.key
  AND record.attempt = item.attempt::uuid
  AND CASE item.state
    WHEN 'completed' THEN record.state IN (${fromStates('completed', 'attempt')})
    WHEN 'failed_retryable' THEN record.state IN (${fromStates('failed_retryable', 'attempt')})
    WHEN 'unknown' THEN record.state IN (${fromStates('unknown', 'attempt')})
    ELSE false
  END
RETURNING record.attempt, extract(epoch FROM record.retain_until)::float8 * 1000 AS retain_until_ms`,
);
