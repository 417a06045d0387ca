import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { Held } from '../../src/store/store.ts';
import { contract } from './contract.ts';
import { connected, postgresHarness } from './postgres-harness.ts';
import { answer, heldBy, recordAt, reservation, reserved, retentionMs } from './samples.ts';

t.test('the contract', async (t) => contract(t, (t) => postgresHarness(t)));

t.test('the contract, with plans that the server keeps', async (t) => {
  contract(t, async (t) => {
    const harness = await postgresHarness(t);
    // As after an analyze of a large table; see pool.ts.
    await harness.query(`UPDATE pg_class SET reltuples = 1000000 WHERE oid = 'oncegate.record'::regclass`);
    return harness;
  });
});

t.test(
  'a row locked by somebody else does not hold its neighbours, and settles once it is free',
  async (t) => {
    const { stores, block } = await postgresHarness(t);
    const [store] = stores;
    const all = await Promise.all(Array.from({ length: 50 }, () => reserved(store)));
    const locked = await reserved(store);
    const unblock = await block(locked);
    const settle = (held: typeof locked) =>
      store.completeIfHeld({ ...heldBy(held), answer: answer(), retentionMs });
    const waiting = settle(locked);
    const results = await Promise.all(all.map(settle));
    t.ok(results.every((result) => result.kind === 'settled'));
    t.equal(store.unsettled, 1);
    const later = await Promise.all(
      (await Promise.all(Array.from({ length: 10 }, () => reserved(store)))).map(settle),
    );
    t.ok(
      later.every((result) => result.kind === 'settled'),
      'nor those that come after',
    );
    await unblock();
    t.equal((await waiting).kind, 'settled');
    t.equal((await recordAt(store, locked)).state, 'completed');
  },
);

t.test('a key that somebody is inserting does not hold its neighbours', async (t) => {
  const { stores, url } = await postgresHarness(t);
  const [store] = stores;
  const wanted = reservation();
  const holder = await connected(t, url);
  await holder.query('BEGIN');
  await holder.query(
    `INSERT INTO oncegate.record (scope, key, attempt, epoch, instance, state, had_credentials, fingerprint,
      raw_digest, fingerprint_rule, deadline, reserved_at, method, path, request_id)
    VALUES ($1, $2, $3, 0, $3, 'in_progress', false, '', '', '', now(), now(), '', '', '')`,
    [wanted.scope, wanted.key, reservation().attempt],
  );
  const [locked, ...others] = await Promise.all(
    [wanted, ...Array.from({ length: 20 }, () => reservation())].map((one) => store.reserve(one)),
  );
  t.equal(locked?.kind, 'unavailable');
  t.ok(others.every((result) => result.kind === 'reserved'));
  await holder.query('COMMIT');
  t.equal((await store.reserve(wanted)).kind, 'exists');
});

t.test('whoever had to wait for another that inserted the key sees its record', async (t) => {
  const { stores, url } = await postgresHarness(t);
  const [store] = stores;
  const wanted = reservation();
  const { attempt } = reservation();
  const holder = await connected(t, url);
  await holder.query('BEGIN');
  await holder.query(
    `INSERT INTO oncegate.record (scope, key, attempt, epoch, instance, state, had_credentials, fingerprint,
      raw_digest, fingerprint_rule, deadline, reserved_at, method, path, request_id)
    VALUES ($1, $2, $3, 0, $3, 'in_progress', false, '', '', '', now(), now(), '', '', '')`,
    [wanted.scope, wanted.key, attempt],
  );
  // On the server, for it has less time than we would need: commits as soon as somebody waits for it.
  const committed = holder.query(
    `DO $$
    BEGIN
      WHILE NOT EXISTS (
        SELECT FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid
      ) LOOP
        PERFORM pg_sleep(0.001);
      END LOOP;
    END $$;
    COMMIT`,
  );
  t.match(await store.reserve(wanted), { kind: 'exists', record: { attempt } });
  await committed;
});

t.test('slow passes do not delay the lease', async (t) => {
  const { another, url } = await postgresHarness(t);
  const store = another({ timeouts: { loopMs: 1_500 } });
  const instance = randomUUID();
  await store.openLease(instance, 60_000);
  const holder = await connected(t, url);
  await holder.query('BEGIN');
  await holder.query('LOCK TABLE oncegate.record IN ACCESS EXCLUSIVE MODE');
  const passes = Promise.allSettled([store.sweep(10), store.reap(10)]);
  const startedMs = performance.now();
  t.equal(await store.renewLease(instance, 60_000), true);
  t.ok(performance.now() - startedMs < 1_000);
  await holder.query('ROLLBACK');
  await passes;
});

t.test('what the server will not take', async (t) => {
  const { stores, query } = await postgresHarness(t);
  const [store] = stores;
  const lastError = async (key: string) =>
    (await query('SELECT status, last_error FROM oncegate.record WHERE key = $1', [key]))[0];

  t.test('a status out of range: unknown, and the caller is told that nothing was kept', async (t) => {
    const [bad, ...good] = await Promise.all(Array.from({ length: 6 }, () => reserved(store)));
    const [refused, ...settled] = await Promise.all(
      [bad, ...good].map((one, index) => {
        if (one === undefined) throw new Error('none');
        const kept = answer(index === 0 ? { status: 70_000 } : {});
        return store.completeIfHeld({ ...heldBy(one), answer: kept, retentionMs });
      }),
    );
    t.match(refused, { kind: 'refused', record: { state: 'unknown', attempt: bad?.attempt } });
    t.ok(
      settled.every((result) => result.kind === 'settled'),
      'the neighbours are unharmed',
    );
    t.match(await lastError(bad?.key ?? ''), { status: null, last_error: 'not storable: 22003' });
    t.equal(store.unsettled, 0);
  });

  t.test('a body it refuses: completed without it', async (t) => {
    await query('ALTER TABLE oncegate.record ADD CONSTRAINT test CHECK (octet_length(body) < 50)');
    const wanted = await reserved(store);
    const neighbour = await reserved(store);
    const [result, other] = await Promise.all([
      store.completeIfHeld({ ...heldBy(wanted), answer: answer({ body: Buffer.alloc(100) }), retentionMs }),
      store.completeIfHeld({ ...heldBy(neighbour), answer: answer(), retentionMs }),
    ]);
    await query('ALTER TABLE oncegate.record DROP CONSTRAINT test');
    const { retainUntilMs, ...record } = await recordAt(store, wanted);
    t.strictSame(result, { kind: 'settled', retainUntilMs });
    t.match(record, { state: 'completed', answer: { status: 201, body: null } });
    t.equal(other.kind, 'settled');
  });

  t.test('words it refuses: a release stays a release, without them', async (t) => {
    const wanted = await reserved(store);
    const result = await store.releaseIfHeld({ ...heldBy(wanted), status: 503, error: 'a\0b', retentionMs });
    t.equal(result.kind, 'settled');
    t.equal((await recordAt(store, wanted)).state, 'failed_retryable');
    t.match(await lastError(wanted.key), { status: null, last_error: 'not storable: 22021' });
  });

  t.test('words it refuses: a doubt stays a doubt', async (t) => {
    const wanted = await reserved(store);
    const result = await store.markUnknownIfHeld({ ...heldBy(wanted), status: 502, error: '\0' });
    t.strictSame(result, { kind: 'settled', retainUntilMs: null });
    t.equal((await recordAt(store, wanted)).state, 'unknown');
  });

  t.test('what it can never take is given up, not asked for ever', async (t) => {
    const wanted = await reserved(store);
    const hopeless = { ...heldBy(wanted), attempt: 'no uuid' };
    const result = await store.completeIfHeld({ ...hopeless, answer: answer(), retentionMs });
    t.equal(result.kind, 'unconfirmed');
    t.equal(store.unsettled, 0);
  });

  t.test('a reservation with a byte it refuses: unavailable, the neighbours unharmed', async (t) => {
    const [bad, good] = await Promise.all([
      store.reserve(reservation({ path: '/\0' })),
      store.reserve(reservation()),
    ]);
    t.equal(bad.kind, 'unavailable');
    t.equal(good.kind, 'reserved');
  });
});

t.test('durability', async (t) => {
  const { query, another, url } = await postgresHarness(t);
  const database = new URL(url).pathname.slice(1);
  const set = (setting: string) => query(`ALTER DATABASE ${database} SET ${setting}`);

  t.test('synchronous_commit off: refused when strict, accepted when relaxed', async (t) => {
    await set('synchronous_commit = off');
    const result = await another().reserve(reservation());
    t.match(result, { kind: 'unavailable', cause: { message: /may lose acknowledged commits.*relaxed/ } });
    await t.rejects(another().check(), { code: 'store_unavailable', message: /synchronous_commit off/ });
    t.equal((await another({ durability: 'relaxed' }).reserve(reservation())).kind, 'reserved');
    await set('synchronous_commit = on');
  });

  t.test('read-only: unavailable, also when relaxed', async (t) => {
    const before = another();
    await before.check();
    await set('default_transaction_read_only = on');
    for (const durability of ['strict', 'relaxed'] as const) {
      const result = await another({ durability }).reserve(reservation());
      t.match(result, { kind: 'unavailable', cause: { message: /read-only/ } });
    }
    t.equal((await before.reserve(reservation())).kind, 'reserved', 'sessions from before may still write');
    await query(`SET default_transaction_read_only = off`);
    await set('default_transaction_read_only = off');
    t.equal((await another().reserve(reservation())).kind, 'reserved');
  });
});

t.test('connections that the server ends while idle do no harm', async (t) => {
  const { query, another } = await postgresHarness(t);
  const store = another();
  const wanted = await reserved(store);
  await store.completeIfHeld({ ...heldBy(wanted), answer: answer(), retentionMs });
  await store.sweep(1);
  for (let round = 0; round < 3; round += 1) {
    const ended = await query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND application_name LIKE 'oncegate%'`,
    );
    t.ok(ended.length >= 1);
    const next = reservation();
    t.equal((await store.reserve(next)).kind, 'reserved');
    const settled = await store.completeIfHeld({ ...heldBy(next), answer: answer(), retentionMs });
    t.equal(settled.kind, 'settled');
    // A pass may meet the connection that was just ended; the next one does not.
    await store.sweep(1).catch(() => store.sweep(1));
  }
});

t.test('a crowd for one key is bounded: those beyond are refused at once', async (t) => {
  const { another } = await postgresHarness(t);
  const store = another({ timeouts: { queueMs: 60_000 } });
  const { scope, key } = await reserved(store);
  const crowd = Array.from({ length: 20_050 }, () => reservation({ scope, key }));
  const counts: Record<string, number> = {};
  for (const { kind } of await Promise.all(crowd.map((one) => store.reserve(one))))
    counts[kind] = (counts[kind] ?? 0) + 1;
  t.strictSame(counts, { exists: 20_000, unavailable: 50 });
  t.equal((await store.reserve(reservation())).kind, 'reserved', 'and nobody is counted any longer');
});

t.test('a process that was slow itself does not take that for a slow store', async (t) => {
  const { another } = await postgresHarness(t);
  const store = another({ timeouts: { queueMs: 1 } });
  const asked = store.reserve(reservation());
  const untilMs = performance.now() + 20;
  while (performance.now() < untilMs);
  t.equal((await asked).kind, 'reserved');
});

t.test('that an answer broke off is noted on the completed record of that very attempt', async (t) => {
  const { stores, query } = await postgresHarness(t);
  const [store] = stores;
  const kept = async ({ scope, key }: Held) =>
    (
      await query('SELECT state, last_error FROM oncegate.record WHERE scope = $1 AND key = $2', [scope, key])
    )[0];
  const error = 'the answer broke off';
  const running = await reserved(store);
  await store.noteBrokenAnswerIfHeld({ ...heldBy(running), error });
  t.match(await kept(running), { state: 'in_progress', last_error: null }, 'nothing of one that runs');
  await store.completeIfHeld({ ...heldBy(running), answer: answer({ body: null }), retentionMs });
  await store.noteBrokenAnswerIfHeld({ ...heldBy(running), attempt: randomUUID(), error });
  t.match(await kept(running), { state: 'completed', last_error: null }, 'nothing by another attempt');
  await store.noteBrokenAnswerIfHeld({ ...heldBy(running), error });
  t.match(await kept(running), { state: 'completed', last_error: error });
});
