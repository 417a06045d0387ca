import { waitingStates } from '../../../core/record.ts';
import { fromStates, lockTimeout, type Statement, statement } from './statement.ts';

/** Milliseconds. Whoever holds the row is about to settle it: the person is then told what became of it. */
const operatorLockMs = 2_000;

/**
 * Seconds for which a purged key runs nothing: as long as an answer may be replayed from memory by a replica that does not
 * know of the purge. Errs long: it only delays a retry.
 */
export const purgeBlockSeconds = 60;

interface Change {
  readonly action: 'complete' | 'release' | 'purge';
  readonly to: 'completed' | 'failed_retryable';
  readonly set: string;
  /** Beside the table of legal moves. */
  readonly from: string;
}

/**
 * The change and its line in the audit are one statement: neither is ever there without the other. Compare-and-set on what
 * the person saw. $6 is the line's id, chosen by us before anything is sent, so that a lost answer can be recognised.
 */
function change({ action, to, set, from }: Change): Statement {
  return statement(
    `operator_${action}`,
    `WITH changed AS (
  UPDATE oncegate.record AS record
  SET
    state = '${to}',
${set}
  FROM ${lockTimeout(operatorLockMs)} AS bounded
  WHERE record.scope = $1
    AND record.key = $2
    AND record.attempt = $3::uuid
    AND record.epoch = $4::bigint
    AND record.state = $5::oncegate.state
    AND record.state IN (${fromStates(to, 'operator')})
    AND record.state IN (${from})
  RETURNING record.scope, record.key
)
INSERT INTO oncegate.audit (scope, key, id, actor, action, reason, attempt, epoch, from_state, to_state)
SELECT changed.scope, changed.key, $6::uuid, $7, '${action}', $8, $3::uuid, $4::bigint, $5::oncegate.state, '${to}'
FROM changed
RETURNING id`,
  );
}

const waiting = waitingStates.map((state) => `'${state}'`).join(', ');

/** `last_error` stays in both: it says why somebody had to decide. */
export const operatorComplete = change({
  action: 'complete',
  to: 'completed',
  set: `    status = $9::float8,
    headers = $10,
    body = $11,
    close_framed = false,
    completed_at = clock_timestamp(),
    retain_until = clock_timestamp() + $12::float8 * interval '1 millisecond'`,
  from: waiting,
});

export const operatorRelease = change({
  action: 'release',
  to: 'failed_retryable',
  // Without its status: after a 401 that released the key by itself any request may run under it (core/decide.ts), here only the same.
  set: `    retain_until = clock_timestamp() + $9::float8 * interval '1 millisecond',
    status = NULL`,
  from: waiting,
});

/**
 * The old attempt loses the record: a completion of it that is still on its way must not bring the answer back. The reaper
 * goes by retain_until, which therefore never comes before the block ends.
 */
export const operatorPurge = change({
  action: 'purge',
  to: 'failed_retryable',
  set: `    attempt = $6::uuid,
    status = NULL,
    headers = NULL,
    body = NULL,
    close_framed = false,
    completed_at = NULL,
    last_error = 'purged',
    blocked_until = clock_timestamp() + interval '${purgeBlockSeconds} seconds',
    retain_until = greatest(record.retain_until, clock_timestamp() + interval '${purgeBlockSeconds} seconds')`,
  from: `'completed'`,
});

/** Whether a change was made whose answer did not come. */
export const findAuditLine = statement(
  'find_audit_line',
  `SELECT audit.id
FROM oncegate.audit AS audit
WHERE audit.scope = $1
  AND audit.key = $2
  AND audit.id = $3::uuid`,
);

export const readAudit = statement(
  'read_audit',
  `SELECT extract(epoch FROM audit.at)::float8 * 1000, audit.actor, audit.action, audit.reason, audit.epoch,
  audit.from_state, audit.to_state
FROM oncegate.audit AS audit
WHERE audit.scope = $1
  AND audit.key = $2
ORDER BY audit.at`,
);

export const readLateAnswers = statement(
  'read_late_answers',
  `SELECT late.attempt, late.request_id, late.outcome, late.status,
  extract(epoch FROM late.received_at)::float8 * 1000, octet_length(late.body)
FROM oncegate.late_answer AS late
WHERE late.scope = $1
  AND late.key = $2
ORDER BY late.received_at`,
);
