import { showWarnings, statement } from './statement.ts';

/** Larger bodies are read one by one: 256 answers of 1 MB in one result would not fit the driver. */
const inlineBodyBytes = 65_536;

/**
 * `acknowledged` is a write of one word, of the same transaction as the read and so on the same server, also behind a pooler and in
 * the midst of a failover. A completed record may be visible and not yet be on the synchronous standby, when the process that
 * wrote it was ended in its wait. Standbys get the log in order: once our commit is acknowledged it is there. (The message is
 * what the setting returns.)
 */
const columns = (
  body: string,
): string => `record.scope, record.key, record.attempt, record.epoch, record.state,
  record.had_credentials, record.fingerprint, record.raw_digest, record.fingerprint_rule,
  coalesce(record.retain_until <= clock_timestamp(), false) AS expired,
  extract(epoch FROM record.retain_until)::float8 * 1000 AS retain_until_ms,
  extract(epoch FROM record.retain_until - clock_timestamp())::float8 * 1000 AS retain_for_ms,
  coalesce(record.blocked_until > clock_timestamp(), false) AS blocked,
  record.status, record.close_framed, record.headers, ${body} AS body, octet_length(record.body) AS body_bytes,
  CASE
    WHEN record.state = 'completed' AND current_setting('synchronous_standby_names') <> ''
      THEN pg_logical_emit_message(true, 'oncegate', ${showWarnings})
  END AS acknowledged`;

export const read = statement(
  'read',
  `SELECT ${columns(`CASE WHEN octet_length(record.body) <= ${inlineBodyBytes} THEN record.body END`)}
FROM unnest($1::bytea[], $2::text[]) AS item(scope, key)
JOIN oncegate.record AS record
  ON record.scope = item.scope AND record.key = item.key`,
);

export const readWhole = statement(
  'read',
  `SELECT ${columns('record.body')}
FROM oncegate.record AS record
WHERE record.scope = $1 AND record.key = $2`,
);
