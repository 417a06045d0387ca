import t from 'tap';
import { migrateUp } from '../../src/store/postgres/migrate.ts';
import { openStore } from '../../src/store/postgres/open.ts';
import { PostgresStore } from '../../src/store/postgres/postgres.ts';
import { type OwnServer, ownServer, query } from '../helpers/postgres.ts';
import { until } from '../helpers/until.ts';

let server: OwnServer;
t.before(async () => {
  server = await ownServer(t);
  await migrateUp(server.url);
});

async function set(standby: string, synchronousCommit: string): Promise<void> {
  await query(server.url, `ALTER SYSTEM SET synchronous_standby_names = '${standby}'`);
  await query(server.url, 'SELECT pg_reload_conf()');
  // This change itself must not wait for the standby.
  const database = new URL(server.url).pathname.slice(1);
  const change = `ALTER DATABASE ${database} SET synchronous_commit = ${synchronousCommit}`;
  await query(server.url, `SET synchronous_commit = local; ${change}`);
  await until('the server has read both', async () => {
    const [row] = await query(
      server.url,
      `SELECT current_setting('synchronous_commit') AS commit, current_setting('synchronous_standby_names') AS standby`,
    );
    return row?.['commit'] === synchronousCommit && row['standby'] === standby;
  });
}

/** Why a new store is refused; null: it is accepted. */
async function refusal(durability: 'strict' | 'relaxed'): Promise<string | null> {
  const store = new PostgresStore({ url: server.url, poolSize: 6, durability });
  try {
    await store.check();
    return null;
  } catch (error) {
    return (error as Error).message;
  } finally {
    await store.close(0);
  }
}

t.test('every value of synchronous_commit, with and without a synchronous standby', async (t) => {
  const durable: Record<string, readonly string[]> = {
    '': ['local', 'remote_write', 'on', 'remote_apply'],
    nobody: ['on', 'remote_apply'],
  };
  for (const [standby, values] of Object.entries(durable)) {
    for (const value of ['off', 'local', 'remote_write', 'on', 'remote_apply']) {
      await set(standby, value);
      const text = `synchronous_commit ${value}, synchronous_standby_names '${standby}'`;
      if (values.includes(value)) t.equal(await refusal('strict'), null, `${text}: accepted`);
      else
        t.match(
          await refusal('strict'),
          new RegExp(`may lose.*synchronous_commit ${value}`),
          `${text}: refused`,
        );
      t.equal(await refusal('relaxed'), null, `${text}: accepted when relaxed`);
    }
  }
});

t.test('a start is refused where a commit does not wait for the synchronous standby', async (t) => {
  await set('nobody', 'local');
  const target = {
    kind: 'external',
    url: server.url,
    migrate: 'check',
    poolSize: 6,
    durability: 'strict',
  } as const;
  await t.rejects(openStore(target, 'any', { log: () => {}, signal: undefined }), {
    code: 'store_not_durable',
    exitCode: 2,
    message:
      /a failover may lose.*synchronous_commit local, synchronous_standby_names 'nobody'.*to on or remote_apply/,
  });
});
