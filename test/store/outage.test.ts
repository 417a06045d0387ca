import t from 'tap';
import { type OwnServer, ownServer } from '../helpers/postgres.ts';
import { until } from './fault-harness.ts';
import { connected, type PostgresHarness, postgresHarness } from './postgres-harness.ts';
import { answer, describe, heldBy, recordAt, reservation, reserved, retentionMs } from './samples.ts';

/** What only a server of one's own can go through. */
let server: OwnServer;
let harness: PostgresHarness;
t.before(async () => {
  server = await ownServer(t);
  harness = await postgresHarness(t, server);
});

/** For all sessions, without a restart. */
async function configure(setting: string, value: string): Promise<void> {
  await harness.query(`ALTER SYSTEM SET ${setting} = '${value}'`);
  await harness.query('SELECT pg_reload_conf()');
}

/** A standby that does not exist: from now on no commit is acknowledged. */
async function loseStandby(): Promise<void> {
  const probe = await connected(t, server.url);
  await probe.query('CREATE TABLE IF NOT EXISTS probe (n int)');
  await configure('synchronous_standby_names', 'nobody');
  // The setting reaches all processes a little later: until the first commit hangs.
  await until(async () => {
    let done = false;
    const commit = probe.query('INSERT INTO probe VALUES (1)').finally(() => {
      done = true;
    });
    await until(async () => done || (await waiting()).length > 0);
    if (done) return false;
    for (const pid of await waiting()) await harness.query('SELECT pg_cancel_backend($1)', [pid]);
    await commit;
    return true;
  });
  await probe.end();
}

async function standbyIsBack(): Promise<void> {
  // Not as a write that would itself wait.
  const client = await connected(t, server.url);
  await client.query('SET synchronous_commit = local');
  await client.query(`ALTER SYSTEM SET synchronous_standby_names = ''`);
  await client.query('SELECT pg_reload_conf()');
  await until(async () => (await waiting()).length === 0);
  await client.end();
}

/** Backends that wait for the standby. */
async function waiting(): Promise<number[]> {
  const rows = await harness.query(`SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'`);
  return rows.map((row) => row['pid'] as number);
}

t.test('a commit that the standby does not acknowledge is never reserved', async (t) => {
  const { another, stores } = harness;
  const store = another({ timeouts: { reserveMs: 400 } });
  await store.check();
  await loseStandby();
  const wanted = reservation();
  const result = await store.reserve(wanted);
  t.equal(result.kind, 'unavailable', describe(result));
  await standbyIsBack();
  // The statement was waiting all the while; now it is there, and nobody forwarded it.
  await until(async () => (await stores[0].read([wanted]))[0] !== null);
  t.match(await recordAt(stores[0], wanted), { attempt: wanted.attempt, state: 'in_progress' });
});

t.test(
  'a cancelled wait (success with a warning) is unconfirmed: not reserved until a write is acknowledged',
  async (t) => {
    const { another, query } = harness;
    const store = another({ timeouts: { reserveMs: 1_500 } });
    await store.check();
    await loseStandby();
    const wanted = reservation();
    let result: string | null = null;
    const reserving = store.reserve(wanted).then((value) => {
      result = value.kind;
      return value;
    });
    await until(async () => (await waiting()).length === 1);
    const [first] = await waiting();
    await query('SELECT pg_cancel_backend($1)', [first]);
    // Committed here and visible, so it is read back as ours; then the confirming write waits in its turn.
    await until(async () => (await waiting()).some((pid) => pid !== first));
    t.equal(result, null, 'not yet');
    await standbyIsBack();
    t.equal((await reserving).kind, 'reserved');
  },
);

t.test('a cancelled wait, and the confirming write is not acknowledged either: unavailable', async (t) => {
  const { another, query } = harness;
  const store = another({ timeouts: { reserveMs: 600 } });
  await store.check();
  await loseStandby();
  const reserving = store.reserve(reservation());
  await until(async () => (await waiting()).length === 1);
  await query('SELECT pg_cancel_backend($1)', [(await waiting())[0]]);
  t.equal((await reserving).kind, 'unavailable');
  await standbyIsBack();
});

t.test(
  'a completion is not settled before the standby has it; the row it waits with stops no other',
  async (t) => {
    const { another } = harness;
    const store = another({ timeouts: { settleMs: 400 } });
    const wanted = await reserved(store);
    await loseStandby();
    let settled = false;
    const settling = store
      .completeIfHeld({ ...heldBy(wanted), answer: answer(), retentionMs })
      .finally(() => {
        settled = true;
      });
    await until(async () => (await waiting()).length >= 1);
    // Repeated after its timeout it meets the row locked by its own first try: no second backend waits for the standby.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    t.notOk(settled);
    t.equal((await waiting()).length, 1);
    await standbyIsBack();
    t.equal((await settling).kind, 'settled');
    t.equal((await recordAt(store, wanted)).state, 'completed');
  },
);

t.test(
  'a completion whose wait was cancelled is visible, and yet not settled before a write is acknowledged',
  async (t) => {
    const { another, query } = harness;
    const store = another({ timeouts: { settleMs: 1_000 } });
    const wanted = await reserved(store);
    await loseStandby();
    let settled = false;
    const settling = store
      .completeIfHeld({ ...heldBy(wanted), answer: answer(), retentionMs })
      .finally(() => {
        settled = true;
      });
    await until(async () => (await waiting()).length === 1);
    const [first] = await waiting();
    await query('SELECT pg_cancel_backend($1)', [first]);
    await until(async () => (await waiting()).some((pid) => pid !== first));
    const state = 'SELECT state FROM oncegate.record WHERE attempt = $1';
    t.match(await query(state, [wanted.attempt]), [{ state: 'completed' }], 'visible');
    t.notOk(settled);
    await standbyIsBack();
    t.equal((await settling).kind, 'settled');
  },
);

t.test('a live session turns read-only: unavailable; settlements go through afterwards', async (t) => {
  const { another, stores } = harness;
  const store = another();
  const wanted = await reserved(store);
  await store.releaseIfHeld({ ...heldBy(await reserved(store)), status: null, error: 'test', retentionMs });
  await configure('default_transaction_read_only', 'on');
  await until(async () => (await store.reserve(reservation())).kind === 'unavailable');
  const settling = store.completeIfHeld({ ...heldBy(wanted), answer: answer(), retentionMs });
  await until(() => store.unsettled === 1);
  await harness.query('SET default_transaction_read_only = off');
  await configure('default_transaction_read_only', 'off');
  t.equal((await settling).kind, 'settled');
  t.equal((await recordAt(stores[0], wanted)).state, 'completed');
});

t.test(
  'the server goes away and comes back: unavailable quickly, then it works, without a restart of ours',
  async (t) => {
    const { another } = harness;
    const store = another();
    for (const mode of ['fast', 'immediate'] as const) {
      const wanted = await reserved(store);
      await server.stop(mode);
      const startedMs = performance.now();
      const results = await Promise.all(Array.from({ length: 300 }, () => store.reserve(reservation())));
      t.ok(results.every((result) => result.kind === 'unavailable'));
      t.ok(performance.now() - startedMs < 2_000, `${mode}: ${Math.round(performance.now() - startedMs)} ms`);
      await t.rejects(store.read([wanted]), { code: 'store_unavailable' });
      await t.rejects(store.sweep(1), { code: 'store_unavailable' });
      const settling = store.completeIfHeld({ ...heldBy(wanted), answer: answer(), retentionMs });
      await server.start();
      t.equal((await settling).kind, 'settled', 'what was under way is settled');
      t.equal((await store.reserve(reservation())).kind, 'reserved');
      t.equal((await recordAt(store, wanted)).state, 'completed');
    }
  },
);
