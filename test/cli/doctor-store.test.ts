import { randomBytes, randomUUID } from 'node:crypto';
import t, { type Test } from 'tap';
import { startEmbedded } from '../../src/store/postgres/embedded.ts';
import { checkSchema, migrateUp } from '../../src/store/postgres/migrate.ts';
import { PostgresStore } from '../../src/store/postgres/postgres.ts';
import { query, serverDir, testDatabase } from '../helpers/postgres.ts';
import { tcpProxy } from '../helpers/tcp-proxy.ts';
import { closedPort } from '../proxy/pass-through-server.ts';
import { postgresHarness } from '../store/postgres-harness.ts';
import { answer, heldBy, reserved, retentionMs } from '../store/samples.ts';
import { anyPorts, doctor } from './doctor-run.ts';

/** What needs the tables, in their order. */
const onTables = ['identity', 'vacuum', 'overdue', 'unknown', 'times', 'statements', 'probe'];

async function migrated(t: Test): Promise<{ url: string; name: string }> {
  const { url } = await testDatabase(t);
  await migrateUp(url);
  return { url, name: new URL(url).pathname.slice(1) };
}

const look = (t: Test, url: string, env: NodeJS.ProcessEnv = {}) =>
  doctor(t, anyPorts, { DATABASE_URL: url, ...env });

/** Of the store's checks, all but those named are well. */
function onlyThese(t: Test, seen: Awaited<ReturnType<typeof doctor>>, names: readonly string[]): void {
  const others = seen.checks.filter(({ group, level }) => group === 'Store' && level !== 'ok');
  t.same(
    others.map(({ name }) => name),
    names,
  );
}

t.test('no schema, an older one, a newer one: exit 3', async (t) => {
  const { url } = await testDatabase(t);
  const none = await look(t, url);
  t.equal(none.code, 3);
  t.match(none.check('schema'), {
    level: 'error',
    text: /^version 0, .*0001/,
    advice: 'run: oncegate migrate up',
  });
  onlyThese(t, none, ['schema', 'privileges', ...onTables]);
  t.match(none.check('probe').text, /because of schema/);

  const auto = await look(t, url, { ONCEGATE_STORE_MIGRATE: 'auto' });
  t.equal(auto.code, 0);
  t.match(auto.check('schema'), { level: 'warning', advice: /next start of serve migrates/ });
  t.equal(auto.check('probe').level, 'skipped');

  await migrateUp(url);
  onlyThese(t, await look(t, url), []);
  await query(url, `INSERT INTO oncegate.migration (number, title) VALUES (99, 'of a newer oncegate')`);
  const newer = await look(t, url);
  t.equal(newer.code, 3);
  t.match(newer.check('schema'), { level: 'error', text: /version 99, newer/, advice: /newer oncegate/ });
  onlyThese(t, newer, ['schema', ...onTables]);

  await query(url, 'DELETE FROM oncegate.migration');
  t.match(await look(t, url), { code: 3 });
});

t.test('not reached: exit 4, at once, and nothing more is looked at', async (t) => {
  const { url } = await migrated(t);
  const changed = (change: (url: URL) => void) => {
    const other = new URL(url);
    change(other);
    return other.href;
  };
  const proxy = await tcpProxy(t, { host: '127.0.0.1', port: Number(new URL(url).port) });
  proxy.pause();
  const closed = await closedPort();
  const rows: [what: string, url: string, text: RegExp, advice: RegExp][] = [
    [
      'wrong password',
      changed((to) => (to.password = 'not-the-one')),
      /refuses: password authentication failed/,
      /correct user and password/,
    ],
    ['no password', changed((to) => (to.password = '')), /password must be/, /correct user and password/],
    [
      'no such database',
      changed((to) => (to.pathname = '/nowhere')),
      /refuses: database "nowhere" does not exist/,
      /create that database/,
    ],
    [
      'nothing listens',
      changed((to) => (to.port = String(closed))),
      new RegExp(`^127.0.0.1:${closed}/test_\\w+ does not answer: .*ECONNREFUSED`),
      /start PostgreSQL there/,
    ],
    ['a black hole', proxy.through(url), /does not answer: .*timeout/, /firewall/],
    ['no TLS there', `${url}?sslmode=require`, /refuses: .*SSL/, /turn ssl on .*sslmode=disable/],
  ];
  for (const [what, wrong, text, advice] of rows) {
    const seen = await look(t, wrong);
    t.equal(seen.code, 4, what);
    t.match(seen.check('reachable'), { level: 'error', text, advice }, what);
    t.same(
      seen.checks
        .filter(({ group, name }) => group === 'Store' && name !== 'reachable')
        .map(({ level }) => level),
      new Array(16).fill('skipped'),
    );
    t.match(seen.check('schema').text, /because of reachable/);
    t.equal(seen.check('upstream').level, 'ok', 'the upstream is looked at all the same');
  }
});

t.test('it goes silent half-way: what cannot be told is said, and it ends', async (t) => {
  const { url } = await migrated(t);
  const proxy = await tcpProxy(t, { host: '127.0.0.1', port: Number(new URL(url).port) });
  proxy.onceClientSends('numbackends', 'hold');
  const seen = await look(t, proxy.through(url));
  t.equal(seen.code, 4);
  t.equal(seen.check('standbys').level, 'ok', 'what came before is known');
  t.match(seen.check('connections'), { level: 'error', text: /check failed: .*timeout/i, advice: /again/ });
  for (const name of ['clock', 'schema', ...onTables])
    t.match(seen.check(name), { level: 'skipped', text: /because of connections/ });
});

/** What the probe does not do, and serve does. */
async function worksAs(t: Test, url: string): Promise<void> {
  t.match(await checkSchema(url, 'any'), { version: Number });
  const store = new PostgresStore({ url, poolSize: 1, durability: 'strict' });
  t.teardown(() => store.close(0));
  const instance = randomUUID();
  await store.openLease(instance, 1_000);
  t.ok(await store.renewLease(instance, 60_000));
  await store.closeLease(instance);
  const left = await reserved(store);
  t.same(
    (await store.sweep(10)).map(({ attempt }) => attempt),
    [left.attempt],
  );
  t.same(await store.releaseIfNeverSent([{ ...heldBy(left), instance: left.instance }]), ['released']);
  t.equal(await store.reap(10), 0);
  await query(url, 'DELETE FROM oncegate.record');
}

t.test('a role that is not the owner: the missing grants, word for word, are what it needs', async (t) => {
  const { url } = await migrated(t);
  const role = `Doctor-${randomBytes(4).toString('hex')}`;
  await query(url, `CREATE ROLE "${role}" LOGIN PASSWORD 'of-the-role'`);
  try {
    const asRole = new URL(url);
    asRole.username = role;
    asRole.password = 'of-the-role';
    const bare = await look(t, asRole.href);
    t.equal(bare.code, 4);
    t.match(bare.check('schema'), { level: 'error', text: /permission denied for schema oncegate/ });
    const { advice = '', ...rest } = bare.check('privileges');
    t.match(rest, { level: 'error', text: `role "${role}" lacks privileges` });
    const grants = advice.split('\n').slice(1);
    t.same(grants, [
      `GRANT USAGE ON SCHEMA oncegate TO "${role}";`,
      `GRANT SELECT, INSERT, UPDATE, DELETE ON TABLE oncegate.record TO "${role}";`,
      `GRANT SELECT, INSERT, UPDATE, DELETE ON TABLE oncegate.instance TO "${role}";`,
      `GRANT SELECT, INSERT ON TABLE oncegate.audit TO "${role}";`,
      `GRANT SELECT, INSERT, DELETE ON TABLE oncegate.late_answer TO "${role}";`,
      `GRANT SELECT, INSERT ON TABLE oncegate.identity TO "${role}";`,
      `GRANT SELECT ON TABLE oncegate.migration TO "${role}";`,
      `GRANT USAGE ON SEQUENCE oncegate.epoch TO "${role}";`,
    ]);
    for (const grant of grants) await query(url, grant);
    onlyThese(t, await look(t, asRole.href), []);
    await worksAs(t, asRole.href);

    await query(url, `REVOKE DELETE ON oncegate.record FROM "${role}"`);
    const partly = await look(t, asRole.href);
    t.match(partly.check('privileges').advice, /:\nGRANT DELETE ON TABLE oncegate\.record TO "Doctor-\w+";$/);
    t.match(partly.check('probe'), { level: 'skipped', text: /because of privileges/ });
    t.same(await query(url, 'SELECT FROM oncegate.record'), []);

    const { url: empty } = await testDatabase(t);
    await query(empty, `REVOKE ALL ON DATABASE ${new URL(empty).pathname.slice(1)} FROM PUBLIC`);
    await query(empty, `GRANT CONNECT ON DATABASE ${new URL(empty).pathname.slice(1)} TO "${role}"`);
    asRole.pathname = new URL(empty).pathname;
    t.match((await look(t, asRole.href)).check('privileges'), {
      level: 'warning',
      advice: /GRANT CREATE ON DATABASE test_\w+ TO "Doctor-/,
    });
    await query(empty, `DROP OWNED BY "${role}"`);
  } finally {
    await query(url, `DROP OWNED BY "${role}"`);
    await query(url, `DROP ROLE "${role}"`);
  }
});

t.test('a server that may lose what it acknowledged: exit 2, unless that was accepted', async (t) => {
  const { url, name } = await migrated(t);
  await query(url, `ALTER DATABASE ${name} SET synchronous_commit = off`);
  const strict = await look(t, url);
  t.equal(strict.code, 2);
  t.match(strict.check('durability'), { level: 'error', text: /synchronous_commit off/, advice: /relaxed/ });
  t.match(strict.check('probe'), { level: 'skipped', text: /because of durability/ });
  const relaxed = await look(t, url, { ONCEGATE_STORE_DURABILITY: 'relaxed' });
  t.equal(relaxed.code, 0);
  t.equal(relaxed.check('durability').level, 'warning');
  t.equal(relaxed.check('probe').level, 'ok');
});

t.test('read-only: exit 4, and no probe', async (t) => {
  const { url, name } = await migrated(t);
  await query(url, `ALTER DATABASE ${name} SET default_transaction_read_only = on`);
  const seen = await look(t, url);
  t.equal(seen.code, 4);
  t.match(seen.check('writable'), { level: 'error', advice: /default_transaction_read_only/ });
  onlyThese(t, seen, ['writable', 'statements', 'probe']);
});

t.test('other settings of identity: exit 2', async (t) => {
  const { url } = await migrated(t);
  await query(url, `INSERT INTO oncegate.identity (settings) VALUES ('tenant=header:x-tenant')`);
  const seen = await look(t, url);
  t.equal(seen.code, 2);
  t.match(seen.check('identity'), { level: 'error', advice: /x-tenant[^]*tenant=none[^]*--accept-identity/ });
  onlyThese(t, seen, ['identity']);
});

t.test('records that need somebody: unknown, overdue, slow, dead', async (t) => {
  const { url, stores, query, moveTimes } = await postgresHarness(t);
  const [store] = stores;
  const doubtful = await reserved(store);
  await store.markUnknownIfHeld({ ...heldBy(doubtful), status: null, error: 'cut' });
  await query(`UPDATE oncegate.record SET reserved_at = clock_timestamp() - interval '3 days'`);
  await moveTimes(await reserved(store), { deadlineMs: -300_000 });
  const slow = await reserved(store);
  await store.completeIfHeld({ ...heldBy(slow), answer: answer(), retentionMs });
  await query(
    `UPDATE oncegate.record SET reserved_at = completed_at - interval '29 s' WHERE state = 'completed'`,
  );
  const seen = await look(t, url);
  t.equal(seen.code, 0, 'none of it keeps serve from starting');
  t.match(seen.check('unknown'), { level: 'warning', text: /^1 record is unknown, the oldest since 3 d/ });
  t.match(seen.check('overdue'), { level: 'warning', text: /in_progress past .* by 5 min/, advice: /15s/ });
  t.match(seen.check('times'), { level: 'warning', text: /29 s.*timeout 30s/, advice: /upstream\.timeout/ });
  const patient = await look(t, url, { ONCEGATE_UPSTREAM_TIMEOUT: '90s', ONCEGATE_DRAIN_MAX: '100s' });
  t.match(patient.check('times'), { level: 'ok', text: /measured: 1;/ });
  const brief = await look(t, url, {
    ONCEGATE_UPSTREAM_TIMEOUT: '90s',
    ONCEGATE_DRAIN_MAX: '100s',
    ONCEGATE_LEASE: '20s',
  });
  t.match(brief.check('times'), { level: 'warning', advice: /raise lease/ });

  // Never, but not off: autovacuum of the test server must not come in between.
  await query('ALTER TABLE oncegate.record SET (autovacuum_vacuum_threshold = 2000000000)');
  await query(`INSERT INTO oncegate.record (scope, key, attempt, epoch, instance, state, had_credentials, fingerprint,
      raw_digest, fingerprint_rule, deadline, reserved_at, method, path, request_id)
    SELECT scope, n::text, attempt, epoch, instance, 'unknown', false, fingerprint, raw_digest, fingerprint_rule,
      deadline, reserved_at, method, path, request_id
    FROM (SELECT * FROM oncegate.record LIMIT 1) AS one CROSS JOIN generate_series(1, 12000) AS n`);
  await query(`DELETE FROM oncegate.record WHERE octet_length(key) <= 5`);
  await query('SELECT pg_stat_force_next_flush()');
  t.match((await look(t, url)).check('vacuum'), { level: 'warning', text: /12,\d+ dead/, advice: /VACUUM/ });
  await query('ALTER TABLE oncegate.record SET (autovacuum_enabled = off)');
  t.match((await look(t, url)).check('vacuum'), { level: 'warning', text: /off for this table/ });
});

t.test('embedded: looked at beside the sidecar that has it, else started for that', async (t) => {
  const dataDir = serverDir(t);
  const args = [...anyPorts, '--embedded', '--data-dir', dataDir];
  const owner = await startEmbedded({ dataDir, log: () => {} });
  try {
    await migrateUp(owner.url);
    onlyThese(t, await doctor(t, args), []);
    t.equal((await query(owner.url, 'SELECT 1')).length, 1, 'it still runs');
  } finally {
    await owner.stop();
  }
  const alone = await doctor(t, args);
  onlyThese(t, alone, []);
  const again = await startEmbedded({ dataDir, log: () => {} });
  await again.stop();
  t.not(again.pid, owner.pid, 'it had been stopped');
});
