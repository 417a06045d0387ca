import { statement } from './statement.ts';

/** Asked on each new connection; see pool.ts for what follows from it. It takes no lock, and never waits. */
export const lookAtServer = `SELECT
  current_setting('synchronous_commit'),
  current_setting('fsync'),
  pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on',
  pg_backend_pid()`;

export type Look = readonly [synchronousCommit: string, fsync: string, readOnly: boolean, backend: number];

/**
 * For connections that are ours alone, not behind a pooler. Left to itself the server plans a settlement anew each time, for 0.2 ms:
 * it takes a plan made for these values to be cheaper. And a plan that it keeps was made for the table as it was: on a small one
 * that is a scan of all of it, and it stays while the table grows, until the next autoanalyze (27 ms a batch instead of 0.7 at
 * 100,000 rows). With these settings there is one plan, by the index for one row after another.
 */
export const keepPlans = `SELECT
  set_config('plan_cache_mode', 'force_generic_plan', false),
  set_config('enable_seqscan', 'off', false),
  set_config('enable_bitmapscan', 'off', false),
  set_config('enable_hashjoin', 'off', false),
  set_config('enable_mergejoin', 'off', false),
  set_config('enable_material', 'off', false)`;

export const ping = statement('check', 'SELECT 1');
