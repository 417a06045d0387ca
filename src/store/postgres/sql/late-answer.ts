import { statement, warningsShown } from './statement.ts';

/** Evidence, never an answer: no request is answered from it. A second report of one attempt changes nothing. */
export const keepLateAnswer = statement(
  'keep_late_answer',
  `INSERT INTO oncegate.late_answer (scope, key, attempt, request_id, outcome, status, headers, body)
SELECT $1::bytea, $2::text, $3::uuid, $4::text, $5::text, $6::smallint, $7::bytea, $8::bytea
FROM ${warningsShown} AS shown
ON CONFLICT (scope, key, attempt) DO NOTHING`,
);

/** A month, as long as an unknown outcome may wait for somebody. Not clock_timestamp(), which is no index condition. */
export const reapLateAnswers = statement(
  'reap_late_answers',
  `DELETE FROM oncegate.late_answer
USING ${warningsShown} AS shown
WHERE received_at < statement_timestamp() - interval '30 days'`,
);

/** For people too: of an answer too large to keep the record has nothing but its head. */
export const noteBrokenAnswer = statement(
  'note_broken_answer',
  `UPDATE oncegate.record
SET last_error = $4
FROM ${warningsShown} AS shown
WHERE scope = $1
  AND key = $2
  AND attempt = $3
  AND state = 'completed'`,
);
