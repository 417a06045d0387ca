import { statement } from './statement.ts';

/** Asked on each new connection; see pool.ts for what follows from it. It takes no lock, and never waits. */
export const lookAtServer = `SELECT
  current_setting('synchronous_commit'),
  current_setting('fsync'),
  current_setting('synchronous_standby_names'),
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
  synchronousStandbyNames: string,
  readOnly: boolean,
  records: number | null,
  backend: number,
];

/**
 * For connections that are ours alone, not behind a pooler, once the table has some size. Left to itself the server plans a
 * settlement anew each time, for 0.2 ms: it takes a plan made for these values to be cheaper.
 */
export const keepPlans = `SELECT
  set_config('plan_cache_mode', 'force_generic_plan', false),
  set_config('enable_seqscan', 'off', false),
  set_config('enable_bitmapscan', 'off', false),
  set_config('enable_hashjoin', 'off', false),
  set_config('enable_mergejoin', 'off', false),
  set_config('enable_material', 'off', false)`;

export const ping = statement('check', 'SELECT 1');
