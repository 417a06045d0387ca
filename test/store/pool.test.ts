import { setTimeout } from 'node:timers/promises';
import t from 'tap';
import { Pool } from '../../src/store/postgres/pool.ts';
import { statement } from '../../src/store/postgres/sql/statement.ts';
import { testDatabase } from '../helpers/postgres.ts';
import { tcpProxy } from '../helpers/tcp-proxy.ts';

const connectMs = 400;
const slow = statement('slow', 'SELECT pg_sleep(2)');
const quick = statement('quick', 'SELECT 1');

t.test(
  'a caller that gives up while its new connection is looked at takes no connection with it',
  async (t) => {
    const { url } = await testDatabase(t);
    const { hostname, port } = new URL(url);
    const proxy = await tcpProxy(t, { host: hostname, port: Number(port || 5432) });
    const pool = new Pool({
      plans: 'kept',
      url: proxy.through(url),
      size: 1,
      name: 'test',
      durability: 'strict',
      connectMs,
    });
    t.teardown(() => proxy.cutAll());
    t.strictSame(await pool.query(quick, [], 1_000), [[1]]);
    // The one connection is busy, and will be given up: the next in the queue gets a new one.
    const busy = t.rejects(pool.query(slow, [], connectMs / 2), /slow: no answer/);
    const look = proxy.onceClientSends('synchronous_commit', 'hold');
    const queued = pool.query(quick, [], 1_000).catch(() => {});
    await busy;
    await look.fired;
    // Later than the one in the queue waits, and in time for the look itself.
    await setTimeout(connectMs * 0.75);
    look.release();
    // Answered or given up: either will do.
    await queued;
    t.strictSame(await pool.query(quick, [], 1_000), [[1]]);
    let isEnded = false;
    void pool.end().then(() => (isEnded = true));
    await setTimeout(100);
    t.ok(isEnded, 'and nothing holds up its end');
  },
);
