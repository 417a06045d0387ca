import t from 'tap';
import { migrateUp } from '../../src/store/postgres/migrate.ts';
import { PostgresStore } from '../../src/store/postgres/postgres.ts';
import { hasPgbouncer, startPgbouncer } from '../helpers/pgbouncer.ts';
import { query, testDatabase } from '../helpers/postgres.ts';
import { reservation } from './samples.ts';

t.test(
  'through PgBouncer in transaction mode nothing is prepared by name',
  { skip: hasPgbouncer ? false : 'pgbouncer is not installed' },
  async (t) => {
    const { url } = await testDatabase(t);
    const pooler = await startPgbouncer(url);
    t.teardown(pooler.stop);
    const pooled = pooler.through(url);
    await migrateUp(pooled);
    const store = new PostgresStore({ url: pooled, poolSize: 10, durability: 'strict' });
    t.teardown(() => store.close(1_000));
    // On a table that is large enough for named plans, were we not told.
    await query(url, `UPDATE pg_class SET reltuples = 100000 WHERE oid = 'oncegate.record'::regclass`);
    // It opens a server connection only when all others are busy.
    await Promise.all([1, 2, 3, 4].map(() => query(pooled, 'SELECT pg_sleep(0.2)')));
    for (let round = 0; round < 20; round += 1) {
      const wanted = Array.from({ length: 20 }, () => reservation());
      const results = await Promise.all(wanted.map((one) => store.reserve(one)));
      t.ok(results.every(({ kind }) => kind === 'reserved'));
      const settled = await Promise.all(
        wanted.map(({ scope, key, attempt }) =>
          store.releaseIfHeld({ scope, key, attempt, status: null, error: 'x', retentionMs: 60_000 }),
        ),
      );
      t.ok(settled.every(({ kind }) => kind === 'settled'));
    }
  },
);
