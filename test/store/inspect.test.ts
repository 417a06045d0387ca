import pg from 'pg';
import t, { type Test } from 'tap';
import { probe } from '../../src/store/postgres/inspect-probe.ts';
import { inspectTimes, inspectUnknown } from '../../src/store/postgres/inspect-records.ts';
import { inspectClock, inspectDurability, inspectServer } from '../../src/store/postgres/inspect-server.ts';
import { openSession } from '../../src/store/postgres/inspect-session.ts';
import { ownServer } from '../helpers/postgres.ts';
import { until } from '../helpers/until.ts';
import { connected, postgresHarness } from './postgres-harness.ts';
import { answer, heldBy, reserved, retentionMs } from './samples.ts';

async function opened(t: Test, url: string) {
  const found = await openSession(url);
  if (found.kind === 'failed') throw new Error(found.fault.reason);
  t.teardown(() => found.session.close());
  return found.session;
}

t.test('a look changes nothing, and leaves nothing open when it is refused', async (t) => {
  const { url } = await postgresHarness(t);
  const session = await opened(t, url);
  await t.rejects(session.look('CREATE TABLE of_ours ()'), { code: '25006' });
  t.match(await inspectServer(session), { versionNumber: Number, inRecovery: false, pid: session.greetedBy });
  const settings = `SELECT current_setting('transaction_read_only') AS writes, current_setting('statement_timeout') AS bound`;
  t.same(await session.look(settings), [{ writes: 'on', bound: '3s' }]);
  const { aheadMs, roundTripMs } = await inspectClock(session);
  t.ok(Math.abs(aheadMs) <= roundTripMs / 2 + 1, 'one machine has one clock');
});

t.test('a look that takes long is ended by the server, and the next one works', async (t) => {
  const { url } = await postgresHarness(t);
  const session = await opened(t, url);
  const holder = await connected(t, url);
  await holder.query('BEGIN; LOCK TABLE oncegate.record');
  t.equal(await inspectUnknown(session), null, 'not known is no number');
  await holder.query('ROLLBACK');
  t.same(await inspectUnknown(session), { count: 0, oldestMs: null });
});

t.test('times: completed records only, at most the 1,000 that are kept longest', async (t) => {
  const { url, stores, query } = await postgresHarness(t);
  const session = await opened(t, url);
  t.same(await inspectTimes(session), { count: 0, p99Ms: null, maxMs: null });
  const held = await reserved(stores[0]);
  await stores[0].completeIfHeld({ ...heldBy(held), answer: answer(), retentionMs });
  await query(`UPDATE oncegate.record SET reserved_at = completed_at - interval '2 s'`);
  t.same(await inspectTimes(session), { count: 1, p99Ms: 2_000, maxMs: 2_000 });
  await reserved(stores[0]);
  const released = heldBy(await reserved(stores[0]));
  await stores[0].releaseIfHeld({
    ...released,
    status: null,
    error: 'refused',
    retentionMs: 2 * retentionMs,
  });
  t.equal((await inspectTimes(session)).count, 1);
  await query(`INSERT INTO oncegate.record (scope, key, attempt, epoch, instance, state, had_credentials, fingerprint,
      raw_digest, fingerprint_rule, deadline, reserved_at, completed_at, retain_until, status, headers, method, path,
      request_id)
    SELECT scope, n::text, attempt, epoch, instance, state, false, fingerprint, raw_digest, fingerprint_rule, deadline,
      completed_at - interval '1 s', completed_at, retain_until + interval '9 h', status, headers, method, path,
      request_id
    FROM (SELECT * FROM oncegate.record WHERE state = 'completed') AS one CROSS JOIN generate_series(1, 1000) AS n`);
  t.same(await inspectTimes(session), { count: 1_000, p99Ms: 1_000, maxMs: 1_000 });
});

t.test('the probe leaves nothing, also when it fails half-way', async (t) => {
  const { url, query, countRecords } = await postgresHarness(t);
  const options = { url, poolSize: 10, durability: 'strict' } as const;
  const instances = async () => (await query('SELECT FROM oncegate.instance')).length;
  t.match(await probe(options), { outcome: { kind: 'replayed', commitMs: Number }, leftBehind: null });
  t.same([await countRecords(), await instances()], [0, 0]);

  await query(`ALTER TABLE oncegate.record ADD CONSTRAINT broken CHECK (state <> 'completed')`);
  t.match(await probe(options), { outcome: { kind: 'failed', at: 'complete' }, leftBehind: null });
  t.same([await countRecords(), await instances()], [0, 0]);

  await query(`ALTER TABLE oncegate.record ADD CONSTRAINT worse CHECK (state <> 'in_progress')`);
  t.match(await probe(options), {
    outcome: { kind: 'failed', at: 'reserve', reason: /worse/ },
    leftBehind: null,
  });
  t.equal(await instances(), 0);
});

t.test('what the probe cannot remove, it tells how to', async (t) => {
  const { url, query, countRecords } = await postgresHarness(t);
  await query(`CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'kept'; END $$`);
  await query('CREATE TRIGGER keep BEFORE DELETE ON oncegate.record FOR EACH ROW EXECUTE FUNCTION keep()');
  const { outcome, leftBehind } = await probe({ url, poolSize: 10, durability: 'strict' });
  t.equal(outcome.kind, 'replayed');
  t.equal(leftBehind?.reason, 'kept');
  t.equal(await countRecords(), 1);
  await query('DROP TRIGGER keep ON oncegate.record');
  await query(leftBehind?.remedy ?? '');
  t.equal(await countRecords(), 0);
});

t.test('a standby that streams is seen, by a role without rights, too', async (t) => {
  const { url } = await ownServer(t);
  const session = await opened(t, url);
  t.match(await inspectDurability(session), { standbys: 0, synchronousStandbyNames: '' });
  const admin = await connected(t, url);
  await admin.query(`CREATE ROLE onlooker LOGIN PASSWORD 'onlooker'`);
  // The walsender's protocol, as a standby speaks it; it never gets to its end.
  const standby = new pg.Client({ connectionString: `${url}?replication=true` });
  standby.on('error', () => {});
  t.teardown(() => standby.connection.stream.destroy());
  await standby.connect();
  void standby.query('START_REPLICATION PHYSICAL 0/1000000').catch(() => {});
  await until('it streams', async () => (await inspectDurability(session)).standbys === 1);
  const plain = new URL(url);
  plain.username = plain.password = 'onlooker';
  t.match(await inspectDurability(await opened(t, plain.href)), { standbys: 1, synchronousCommit: 'on' });
});
