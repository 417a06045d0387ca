import pg from 'pg';
import type { Test } from 'tap';
import type { RecordId } from '../../src/core/record.ts';
import { migrateUp } from '../../src/store/postgres/migrate.ts';
import { type PostgresOptions, PostgresStore } from '../../src/store/postgres/postgres.ts';
import { testDatabase } from '../helpers/postgres.ts';
import type { Harness } from './contract.ts';

export interface PostgresHarness extends Harness {
  readonly url: string;
  readonly stores: readonly [PostgresStore, PostgresStore];
  another(options?: Partial<PostgresOptions>): PostgresStore;
  query(sql: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
}

/** A fresh, migrated database and stores on it. */
export async function postgresHarness(t: Test, server?: { url: string }): Promise<PostgresHarness> {
  const { url } = server ?? (await testDatabase(t));
  await migrateUp(url);
  const client = await connected(t, url);
  const query = async (sql: string, values: unknown[] = []) => (await client.query(sql, values)).rows;
  const another = (options: Partial<PostgresOptions> = {}) => {
    const store = new PostgresStore({ url, poolSize: 6, durability: 'strict', ...options });
    t.teardown(() => store.close(0));
    return store;
  };
  const where = 'WHERE scope = $1 AND key = $2';
  const at = ({ scope, key }: RecordId) => [scope, key];
  return {
    url,
    query,
    another,
    stores: [another(), another()],
    async moveTimes(id, { retainUntilMs, deadlineMs }) {
      const set = (column: string, ms: number) =>
        query(`UPDATE oncegate.record SET ${column} = clock_timestamp() + $3 * interval '1 ms' ${where}`, [
          ...at(id),
          ms,
        ]);
      if (retainUntilMs !== undefined) await set('retain_until', retainUntilMs);
      if (deadlineMs === undefined) return;
      await set('deadline', deadlineMs);
      await set('reserved_at', deadlineMs - 60_000);
    },
    async endLease(instance) {
      // Long enough ago for its row to be reaped as well.
      await query(
        `UPDATE oncegate.instance SET lease_until = clock_timestamp() - interval '2 days' WHERE id = $1`,
        [instance],
      );
    },
    async forceState(id, state) {
      await query(`UPDATE oncegate.record SET state = $3 ${where}`, [...at(id), state]);
    },
    async block(id) {
      const holder = await connected(t, url);
      await holder.query('BEGIN');
      await holder.query(`SELECT FROM oncegate.record ${where} FOR UPDATE`, at(id));
      return async () => void (await holder.query('ROLLBACK'));
    },
    async countRecords() {
      const [row] = await query('SELECT count(*)::int AS count FROM oncegate.record');
      return row?.['count'] as number;
    },
    async clear() {
      await query('DELETE FROM oncegate.record');
      await query('DELETE FROM oncegate.instance');
    },
  };
}

export async function connected(t: Test, url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: 'test' });
  client.on('error', () => {});
  await client.connect();
  t.teardown(() => client.end().catch(() => {}));
  return client;
}
