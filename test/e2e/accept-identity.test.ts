import { execFile } from 'node:child_process';
import t from 'tap';
import { migrateUp } from '../../src/store/postgres/migrate.ts';
import { PostgresStore } from '../../src/store/postgres/postgres.ts';
import { query, testDatabase } from '../helpers/postgres.ts';
import { type SidecarProcess, sidecar, sidecarProcess } from '../helpers/sidecar.ts';
import { tcpProxy } from '../helpers/tcp-proxy.ts';
import { until } from '../helpers/until.ts';
import { connected } from '../store/postgres-harness.ts';
import { reservation } from '../store/samples.ts';

const upstream = 'http://127.0.0.1:1';
const changed = { ONCEGATE_TENANT_FROM: '{ header: X-Tenant }' };

/** In a process of its own, with other settings than the sidecars have. */
function accept(databaseUrl: string): Promise<{ code: number; out: string; err: string }> {
  const argv = ['--import=tsx', 'src/cli/oncegate.ts', 'migrate', 'up', '--accept-identity'];
  const env = { PATH: process.env['PATH'], DATABASE_URL: databaseUrl, ...changed };
  return new Promise((resolve) => {
    const child = execFile(process.execPath, argv, { env }, (_, out, err) =>
      resolve({ code: child.exitCode ?? -1, out, err }),
    );
  });
}

const identityOf = async (url: string) => (await query(url, 'SELECT settings FROM oncegate.identity'))[0];
const live = (url: string) =>
  query(url, 'SELECT id FROM oncegate.instance WHERE lease_until > clock_timestamp() ORDER BY id');

/** Somebody waits for a lock in this database. */
const waits = (url: string) => async () =>
  (
    await query(
      url,
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    )
  ).length > 0;

t.test('other settings are accepted only when no instance has a live lease', async (t) => {
  const { url: databaseUrl } = await testDatabase(t);
  const options = { upstream, databaseUrl };
  const first = await sidecarProcess(t, options);
  const both: SidecarProcess[] = [first, await sidecarProcess(t, options)];
  const before = await identityOf(databaseUrl);
  const ids = (await live(databaseUrl)).map(({ id }) => String(id));
  t.equal(ids.length, 2);

  const refused = await accept(databaseUrl);
  t.equal(refused.code, 1);
  t.match(
    refused.err,
    /^oncegate: 2 instances have a live lease[^]*Nothing was changed\. Stop every instance/,
  );
  for (const id of ids) t.match(refused.err, new RegExp(`\n {2}${id}, for another \\d+ s\n`));
  t.same(await identityOf(databaseUrl), before);

  first.kill('SIGTERM');
  await first.exited;
  t.match((await accept(databaseUrl)).err, '1 instance has a live lease');
  for (const one of both) one.kill('SIGTERM');
  await Promise.all(both.map((one) => one.exited));

  const accepted = await accept(databaseUrl);
  t.equal(accepted.code, 0, accepted.err);
  t.match(accepted.out, 'identity is now');
  await t.rejects(sidecarProcess(t, options), /settings that make a key unique differ|ended with 2/);
  await sidecarProcess(t, { ...options, env: changed });
  t.equal((await accept(databaseUrl)).code, 0, 'the same settings again change nothing');
});

t.test('an instance that was starting with the old settings takes no lease', async (t) => {
  const { url: databaseUrl } = await testDatabase(t);
  await (await sidecar(t, { upstream, databaseUrl })).drain(true);
  const { hostname, port } = new URL(databaseUrl);
  const proxy = await tcpProxy(t, { host: hostname, port: Number(port) });
  // It has compared its settings, and is about to open its lease.
  const held = proxy.onceClientSends('INSERT INTO oncegate.instance', 'hold');
  const starting = sidecar(t, { upstream, databaseUrl: proxy.through(databaseUrl) });
  await held.fired;
  const accepted = await accept(databaseUrl);
  t.equal(accepted.code, 0, accepted.err);
  const ended = t.rejects(starting, { code: 'identity_changed', exitCode: 2, message: /takes no lease/ });
  held.release();
  await ended;
  t.same(await live(databaseUrl), []);
});

t.test('a lease that is being opened is waited for, and then refused', async (t) => {
  const { url } = await testDatabase(t);
  await migrateUp(url, { acceptIdentity: 'old' });
  const opening = await connected(t, url);
  await opening.query('BEGIN');
  await opening.query(
    `INSERT INTO oncegate.instance (id, lease_until) VALUES (gen_random_uuid(), now() + interval '1 minute')`,
  );
  const ended = t.rejects(migrateUp(url, { acceptIdentity: 'new' }), { code: 'instances_live', exitCode: 1 });
  await until('it waits', waits(url));
  await opening.query('COMMIT');
  await ended;
  t.same(await identityOf(url), { settings: 'old' });
});

t.test('a lease that comes while other settings are being accepted is refused', async (t) => {
  const { url } = await testDatabase(t);
  await migrateUp(url, { acceptIdentity: 'old' });
  const store = new PostgresStore({ url, poolSize: 6, durability: 'strict', identity: 'old' });
  t.teardown(() => store.close(0));
  // More often than a server plans a prepared statement anew.
  for (let count = 0; count < 8; count += 1) await store.openLease(reservation().instance, 1);
  const accepting = await connected(t, url);
  await accepting.query('BEGIN; LOCK TABLE oncegate.instance IN EXCLUSIVE MODE');
  const ended = t.rejects(store.openLease(reservation().instance, 60_000), { code: 'identity_changed' });
  await until('it waits', waits(url));
  await accepting.query(`UPDATE oncegate.identity SET settings = 'new'; COMMIT`);
  await ended;
  t.same(await live(url), []);
});
