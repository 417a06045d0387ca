import { lockTimeout, statement, warningsShown } from './statement.ts';

/** Milliseconds. Only an earlier renewal of the same lease can hold the row, hung in its commit: no use to queue up. */
const leaseLockMs = 1_000;

/**
 * No row: the store's identity is another than ours (`$3`; null: not compared). Who changes it locks this table first: an INSERT that
 * had to wait for that lock sees the new identity, and one that came before it is seen as a live lease.
 */
export const openLease = statement(
  'open_lease',
  `INSERT INTO oncegate.instance (id, lease_until)
SELECT $1::uuid, clock_timestamp() + $2::float8 * interval '1 millisecond'
FROM ${warningsShown} AS shown
WHERE $3::text IS NULL
  OR EXISTS (SELECT FROM oncegate.identity WHERE settings = $3::text)
RETURNING id`,
);

/** No row: the lease had lapsed. It must not live again, for the sweeper may have acted on it. */
export const renewLease = statement(
  'renew_lease',
  `UPDATE oncegate.instance
SET lease_until = clock_timestamp() + $2::float8 * interval '1 millisecond'
FROM ${lockTimeout(leaseLockMs)} AS bounded
WHERE id = $1::uuid
  AND lease_until > clock_timestamp()
RETURNING id`,
);

export const closeLease = statement(
  'close_lease',
  `UPDATE oncegate.instance
SET lease_until = clock_timestamp()
FROM ${lockTimeout(leaseLockMs)} AS bounded
WHERE id = $1::uuid
  AND lease_until > clock_timestamp()`,
);
