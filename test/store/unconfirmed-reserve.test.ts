import t from 'tap';
import { type Faults, faultHarness, until } from './fault-harness.ts';
import { connected } from './postgres-harness.ts';
import { answer, describe, heldBy, recordAt, reservation, reserved, retentionMs, someId } from './samples.ts';

/** Every branch in which a reservation's answer does not arrive. */
let faults: Faults;
t.before(async () => {
  faults = await faultHarness(t);
});
t.beforeEach(() => faults.reset());

t.test('the answer is lost after the commit: read back, confirmed by a write, reserved', async (t) => {
  const { shaky, sent, loseAnswer, stores } = faults;
  loseAnswer('INSERT');
  const wanted = reservation();
  const result = await shaky.reserve(wanted);
  if (result.kind !== 'reserved') throw new Error(describe(result));
  t.match(await recordAt(stores[0], wanted), { attempt: wanted.attempt, epoch: result.epoch });
  t.match(sent, { reserve: 1, read: 1, confirm: 1 });
});

t.test(
  'the statement never arrives: nothing found, sent again with the same attempt, reserved',
  async (t) => {
    const { shaky, sent, loseStatement, stores } = faults;
    loseStatement('reserve');
    const wanted = reservation();
    t.equal((await shaky.reserve(wanted)).kind, 'reserved');
    t.equal((await recordAt(stores[0], wanted)).attempt, wanted.attempt);
    t.match(sent, { reserve: 2, read: 1, confirm: 0 });
  },
);

t.test('lost twice on the way: unavailable, and nothing is there', async (t) => {
  const { shaky, sent, loseStatement, stores } = faults;
  loseStatement('reserve');
  loseStatement('reserve');
  const wanted = reservation();
  t.match(await shaky.reserve(wanted), { kind: 'unavailable', mayExist: true });
  t.match(sent, { reserve: 2, confirm: 0 });
  t.strictSame(await stores[0].read([wanted]), [null]);
});

t.test(
  'both answers are lost, to the insert and to the read: unavailable, though the row is there',
  async (t) => {
    const { shaky, loseAnswer, stores } = faults;
    loseAnswer('INSERT');
    loseAnswer('SELECT');
    const wanted = reservation();
    t.match(await shaky.reserve(wanted), { kind: 'unavailable', mayExist: true });
    t.match(await recordAt(stores[0], wanted), { attempt: wanted.attempt, state: 'in_progress' });
    const other = reservation({ scope: wanted.scope, key: wanted.key });
    t.equal((await shaky.reserve(other)).kind, 'exists', 'nobody else gets it');
  },
);

t.test('the confirming write is not acknowledged: unavailable, for visible is not durable', async (t) => {
  const { shaky, sent, loseAnswer } = faults;
  loseAnswer('INSERT');
  loseAnswer('UPDATE');
  t.match(await shaky.reserve(reservation()), { kind: 'unavailable', mayExist: true });
  t.match(sent, { reserve: 1, read: 1, confirm: 1 });
});

t.test('swept between the read and the confirming write: not reserved', async (t) => {
  const { shaky, loseAnswer, delayStatement, stores } = faults;
  loseAnswer('INSERT');
  const confirming = delayStatement('confirm');
  const wanted = reservation();
  const result = shaky.reserve(wanted);
  await confirming.fired;
  t.ok((await stores[0].sweep(100)).some((one) => one.attempt === wanted.attempt));
  confirming.release();
  t.equal((await result).kind, 'exists');
  t.equal((await recordAt(stores[0], wanted)).state, 'unknown');
});

t.test('the answer is lost while another holds the key: its record', async (t) => {
  const { shaky, sent, loseAnswer, stores } = faults;
  const owner = await reserved(stores[0]);
  loseAnswer('INSERT');
  const result = await shaky.reserve(reservation({ scope: owner.scope, key: owner.key }));
  t.match(result, { kind: 'exists', record: { attempt: owner.attempt } });
  t.equal(sent.confirm, 0);
});

t.test('another took the key while our first statement was lost: its record, not ours', async (t) => {
  const { shaky, loseStatement, delayStatement, stores } = faults;
  loseStatement('reserve');
  const wanted = reservation();
  const result = shaky.reserve(wanted);
  // The read-back shows nothing; then somebody else comes before the second insert.
  const second = delayStatement('reserve');
  await second.fired;
  const owner = await reserved(stores[0], { scope: wanted.scope, key: wanted.key });
  second.release();
  t.match(await result, { kind: 'exists', record: { attempt: owner.attempt } });
});

t.test('a whole batch is read back, each row for itself', async (t) => {
  const { shaky, sent, loseAnswer, stores } = faults;
  const owner = await reserved(stores[0]);
  loseAnswer('INSERT');
  const all = [reservation(), reservation({ scope: owner.scope, key: owner.key }), reservation()];
  const results = await Promise.all(all.map((one) => shaky.reserve(one)));
  t.strictSame(
    results.map((result) => result.kind),
    ['reserved', 'exists', 'reserved'],
  );
  t.match(sent, { reserve: 1, confirm: 1 });
});

t.test('the losers cannot be read: those who won keep what was acknowledged', async (t) => {
  const { shaky, loseAnswer, stores } = faults;
  const owner = await reserved(stores[0]);
  loseAnswer('SELECT');
  const results = await Promise.all([
    shaky.reserve(reservation({ scope: owner.scope, key: owner.key })),
    shaky.reserve(reservation()),
  ]);
  t.strictSame(
    results.map((result) => result.kind),
    ['unavailable', 'reserved'],
  );
});

t.test('a statement that arrives long after its sender gave up changes nothing', async (t) => {
  const { shaky, delayStatement, deliver, stores } = faults;
  const wanted = reservation();
  const ghost = delayStatement('reserve');
  t.equal((await shaky.reserve(wanted)).kind, 'reserved', 'by the second insert');
  const kept = answer();
  await shaky.completeIfHeld({ ...heldBy(wanted), answer: kept, retentionMs });
  const before = await recordAt(stores[0], wanted);
  const epoch = await lastEpoch();
  await deliver(ghost);
  t.ok((await lastEpoch()) > epoch, 'it was carried out');
  t.strictSame(await recordAt(stores[0], wanted), before);
});

t.test('a ghost that comes first is found by its own attempt, and only by it', async (t) => {
  const { shaky, delayStatement, deliver, stores } = faults;
  const wanted = reservation();
  const first = delayStatement('reserve');
  const pending = shaky.reserve(wanted);
  await first.fired;
  const second = delayStatement('reserve');
  t.match(await pending, { kind: 'unavailable', mayExist: true });
  await deliver(first);
  await deliver(second);
  const other = reservation({ scope: wanted.scope, key: wanted.key });
  t.match(await stores[0].reserve(other), { kind: 'exists', record: { attempt: wanted.attempt } });
});

t.test('the server ends the connection (FATAL): read back, sent again', async (t) => {
  const { shaky, url, query } = faults;
  const wanted = reservation();
  // An uncommitted row of the same key makes our insert wait, so that there is something to end.
  const holder = await connected(t, url);
  await holder.query('BEGIN');
  await holder.query(
    `INSERT INTO oncegate.record (scope, key, attempt, epoch, instance, state, had_credentials, fingerprint,
      raw_digest, fingerprint_rule, deadline, reserved_at, method, path, request_id)
    VALUES ($1, $2, $3, 0, $3, 'in_progress', false, '', '', '', now(), now(), '', '', '')`,
    [wanted.scope, wanted.key, reservation().attempt],
  );
  const result = shaky.reserve(wanted);
  await until(async () => {
    const ended = await query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'oncegate reserve' AND wait_event_type = 'Lock'`,
    );
    return ended.length > 0;
  });
  await holder.query('ROLLBACK');
  t.equal((await result).kind, 'reserved');
});

t.test('a black hole: unavailable within the bounded wait, for everyone who waits', async (t) => {
  const { shaky, proxy } = faults;
  const startedMs = performance.now();
  proxy.pause();
  const crowd = Array.from({ length: 1_000 }, () => shaky.reserve(reservation()));
  const follower = someId();
  crowd.push(shaky.reserve(reservation(follower)), shaky.reserve(reservation(follower)));
  const results = await Promise.all(crowd);
  const tookMs = performance.now() - startedMs;
  proxy.cutAll();
  proxy.resume();
  t.ok(results.every((result) => result.kind === 'unavailable'));
  const sent = results.filter((result) => result.kind === 'unavailable' && result.mayExist);
  t.ok(sent.length > 0 && sent.length <= 512, `${sent.length} were sent: of all others no row can exist`);
  // Four batches of 256; without a bound in the queue each would wait for all before it.
  t.ok(tookMs < 6_000, `${Math.round(tookMs)} ms`);
  t.equal((await shaky.reserve(reservation())).kind, 'reserved', 'and it recovers by itself');
});

t.test('connections are refused: unavailable at once', async (t) => {
  const { shaky, proxy, sent } = faults;
  proxy.refuse(true);
  proxy.cutAll();
  const startedMs = performance.now();
  // What it sends on a connection that has just been cut may have arrived, for all it knows.
  t.equal((await shaky.reserve(reservation())).kind, 'unavailable');
  t.match(await shaky.reserve(reservation()), { kind: 'unavailable', mayExist: false });
  t.ok(performance.now() - startedMs < 1_000);
  t.equal(sent.reserve, 0);
  await t.rejects(shaky.check(), { code: 'store_unavailable' });
  await t.rejects(shaky.read([someId()]), { code: 'store_unavailable' });
  proxy.refuse(false);
  t.equal((await shaky.reserve(reservation())).kind, 'reserved');
});

async function lastEpoch(): Promise<bigint> {
  const [row] = await faults.query('SELECT last_value FROM oncegate.epoch');
  return BigInt(row?.['last_value'] as string);
}
