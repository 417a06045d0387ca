import t from 'tap';
import { migrateUp } from '../../src/store/postgres/migrate.ts';
import { PostgresStore } from '../../src/store/postgres/postgres.ts';
import { ownServer, query } from '../helpers/postgres.ts';
import { until } from '../helpers/until.ts';
import { answer, heldBy, reservation, reserved, retentionMs } from './samples.ts';

/** A server that waits for a synchronous standby which is not there: what is visible on it may be nowhere else. */
t.test('a completed record is not handed out before a write was acknowledged after it', async (t) => {
  const server = await ownServer(t);
  await migrateUp(server.url);
  // A role without any special right: what this takes, everybody may do.
  await query(server.url, `CREATE ROLE app LOGIN PASSWORD 'app'`);
  await query(server.url, 'GRANT USAGE ON SCHEMA oncegate TO app');
  await query(server.url, 'GRANT ALL ON ALL TABLES IN SCHEMA oncegate TO app');
  await query(server.url, 'GRANT USAGE ON SEQUENCE oncegate.epoch TO app');
  const url = new URL(server.url);
  url.username = 'app';
  url.password = 'app';
  const timeouts = { reserveMs: 500, loopMs: 500 };
  const store = new PostgresStore({ url: url.href, poolSize: 10, durability: 'strict', timeouts });
  t.teardown(() => store.close(0));
  const wanted = await reserved(store);
  await store.completeIfHeld({ ...heldBy(wanted), answer: answer(), retentionMs });
  const again = () => store.reserve(reservation({ scope: wanted.scope, key: wanted.key }));
  t.match(await again(), { kind: 'exists', record: { state: 'completed' } });

  const setStandby = async (names: string) => {
    await query(server.url, `ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
    await query(server.url, 'SELECT pg_reload_conf()');
  };
  await setStandby('nobody');
  // Each server process reads its new settings before its next statement or the one after.
  await until(
    'nothing is acknowledged, and nothing handed out',
    async () => (await again()).kind === 'unavailable',
  );
  await t.rejects(store.read([wanted]), { code: 'store_unavailable' }, 'nor do those who wait get it');
  await setStandby('');
  await until('it is handed out again', async () => (await again()).kind === 'exists');
});
