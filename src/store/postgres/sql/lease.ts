import { lockTimeout, statement } from './statement.ts';

/** Milliseconds. Only an earlier renewal of the same lease can hold the row, hung in its commit: no use to queue up. */
const leaseLockMs = 1_000;

export const openLease = statement(
  'open_lease',
  `INSERT INTO oncegate.instance (id, lease_until)
VALUES ($1::uuid, clock_timestamp() + $2::float8 * interval '1 millisecond')`,
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
