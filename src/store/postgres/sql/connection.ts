import { statement } from './statement.ts';

/** Asked on each new connection; see pool.ts for what follows from it. It takes no lock on the table, and never waits. */
export const lookAtServer = `SELECT
  current_setting('synchronous_commit'),
  current_setting('fsync'),
  pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on',
  (
    SELECT greatest(reltuples, pg_stat_get_live_tuples(oid))
    FROM pg_class
    WHERE oid = to_regclass('oncegate.record')
  ),
  pg_backend_pid()`;

export type Look = readonly [
  synchronousCommit: string,
  fsync: string,
  readOnly: boolean,
  records: number | null,
  backend: number,
];

export const ping = statement('check', 'SELECT 1');
