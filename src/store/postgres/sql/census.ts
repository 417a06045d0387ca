import { waitingStates } from '../../../core/record.ts';
import { statement } from './statement.ts';

/** Rows of one kind. Beyond this the number says all that anybody needs to know, and counting on would cost too much. */
const mostCounted = 100_000;

const waiting = waitingStates.map((state) => `'${state}'`).join(', ');

/** Only by the small indexes of what is not settled, and without reading the table. One row. */
export const takeCensus = statement(
  'census',
  `SELECT
  (
    SELECT count(*)::float8
    FROM (SELECT FROM oncegate.record WHERE state = 'in_progress' LIMIT ${mostCounted}) AS running
  ),
  (
    SELECT count(*)::float8
    FROM (
      SELECT
      FROM oncegate.record
      WHERE state = 'in_progress'
        AND deadline < statement_timestamp()
      LIMIT ${mostCounted}
    ) AS overdue
  ),
  waiting.unknown,
  waiting.dead_letter,
  extract(epoch FROM clock_timestamp() - waiting.oldest)::float8 * 1000,
  (SELECT count(*)::float8 FROM (SELECT FROM oncegate.late_answer LIMIT ${mostCounted}) AS late)
FROM (
  SELECT
    count(*) FILTER (WHERE state = 'unknown')::float8 AS unknown,
    count(*) FILTER (WHERE state = 'dead_letter')::float8 AS dead_letter,
    min(reserved_at) AS oldest
  FROM (
    SELECT state, reserved_at
    FROM oncegate.record
    WHERE state IN (${waiting})
    ORDER BY reserved_at
    LIMIT ${mostCounted}
  ) AS counted
) AS waiting`,
);
