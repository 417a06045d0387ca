import t from 'tap';
import type { Reservation } from '../../src/store/store.ts';
import { type Faults, faultHarness, until } from './fault-harness.ts';
import { answer, heldBy, recordAt, reservation, reserved, retentionMs } from './samples.ts';

/** Every branch in which a settlement's answer does not arrive. */
let faults: Faults;
t.before(async () => {
  faults = await faultHarness(t);
});
t.beforeEach(() => faults.reset());

const running = (): Promise<Reservation> => reserved(faults.stores[0]);
const complete = (held: Reservation, changes = {}) =>
  faults.shaky.completeIfHeld({ ...heldBy(held), answer: answer(changes), retentionMs });

t.test('the answer is lost after the commit: completes exactly once, settled', async (t) => {
  const { shaky, sent, loseAnswer, stores } = faults;
  const wanted = await running();
  loseAnswer('UPDATE');
  const result = await complete(wanted);
  const record = await recordAt(stores[0], wanted);
  t.equal(record.state, 'completed');
  t.strictSame(result, { kind: 'settled', retainUntilMs: record.retainUntilMs });
  t.match(sent, { settle: 1, confirm: 1 });
  t.equal(shaky.unsettled, 0);
});

for (const [name, settle, state] of [
  ['release', () => faults.shaky.releaseIfHeld, 'failed_retryable'],
  ['doubt', () => faults.shaky.markUnknownIfHeld, 'unknown'],
] as const) {
  t.test(`the same for a ${name}`, async (t) => {
    const { sent, loseAnswer, stores } = faults;
    const wanted = await running();
    loseAnswer('UPDATE');
    const held = { ...heldBy(wanted), status: 503, error: 'test', retentionMs };
    const result = await settle().call(faults.shaky, held);
    const record = await recordAt(stores[0], wanted);
    t.equal(record.state, state);
    t.strictSame(result, { kind: 'settled', retainUntilMs: record.retainUntilMs });
    t.match(sent, { settle: 1, confirm: 1 });
  });
}

t.test('the statement never arrives: sent again, settled', async (t) => {
  const { sent, loseStatement, stores } = faults;
  const wanted = await running();
  loseStatement('settle');
  t.equal((await complete(wanted)).kind, 'settled');
  t.equal((await recordAt(stores[0], wanted)).state, 'completed');
  t.match(sent, { settle: 2, confirm: 0 });
});

t.test('the confirming write is not acknowledged either: asked again until it is', async (t) => {
  const { sent, loseAnswer } = faults;
  const wanted = await running();
  loseAnswer('UPDATE');
  loseAnswer('UPDATE');
  t.equal((await complete(wanted)).kind, 'settled');
  t.match(sent, { settle: 1, confirm: 2 });
});

t.test('the read-back is not answered: asked again', async (t) => {
  const { sent, loseAnswer } = faults;
  const wanted = await running();
  loseAnswer('UPDATE');
  loseAnswer('SELECT');
  t.equal((await complete(wanted)).kind, 'settled');
  t.match(sent, { settle: 1, confirm: 1 });
});

t.test(
  'a whole batch: what was committed is confirmed, what was not is refused by its own record',
  async (t) => {
    const { sent, loseAnswer, stores } = faults;
    const all = await Promise.all([running(), running(), running()]);
    const stranger = { ...(all[1] as Reservation), attempt: reservation().attempt };
    loseAnswer('UPDATE');
    const results = await Promise.all([complete(all[0]), complete(stranger), complete(all[2])]);
    t.strictSame(
      results.map((result) => result.kind),
      ['settled', 'refused', 'settled'],
    );
    t.equal((await recordAt(stores[0], stranger)).state, 'in_progress');
    t.match(sent, { settle: 1, confirm: 1 });
  },
);

t.test('another attempt has the key by the time it can be asked: refused, and shown', async (t) => {
  const { proxy, loseStatement, stores } = faults;
  const wanted = await running();
  const lost = loseStatement('settle');
  proxy.refuse(true);
  const result = complete(wanted);
  await lost.fired;
  await stores[0].releaseIfHeld({ ...heldBy(wanted), status: null, error: 'operator', retentionMs });
  const next = reservation({ scope: wanted.scope, key: wanted.key });
  await stores[0].takeOverIfUnchanged(await recordAt(stores[0], wanted), next);
  proxy.refuse(false);
  t.match(await result, { kind: 'refused', record: { attempt: next.attempt, state: 'in_progress' } });
});

t.test('a completion that arrives long after it was settled by its repetition changes nothing', async (t) => {
  const { sent, delayStatement, deliver, stores } = faults;
  const wanted = await running();
  const ghost = delayStatement('settle');
  const result = await complete(wanted);
  t.equal(result.kind, 'settled');
  t.equal(sent.settle, 2);
  const before = await recordAt(stores[0], wanted);
  await deliver(ghost);
  t.strictSame(await recordAt(stores[0], wanted), before);
});

t.test('a release that arrives after another attempt took the key does not free it', async (t) => {
  const { shaky, delayStatement, deliver, stores } = faults;
  const wanted = await running();
  const ghost = delayStatement('settle');
  const held = { ...heldBy(wanted), status: null, error: 'test', retentionMs };
  t.equal((await shaky.releaseIfHeld(held)).kind, 'settled');
  const next = reservation({ scope: wanted.scope, key: wanted.key });
  await stores[0].takeOverIfUnchanged(await recordAt(stores[0], wanted), next);
  const before = await recordAt(stores[0], wanted);
  await deliver(ghost);
  t.strictSame(await recordAt(stores[0], wanted), before);
});

t.test('the server ends the connection (FATAL): asked again, settled', async (t) => {
  const { query, block } = faults;
  const wanted = await running();
  const unblock = await block(wanted);
  const result = complete(wanted);
  await until(async () => {
    const ended = await query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'oncegate settle' AND wait_event_type = 'Lock'`,
    );
    return ended.length > 0;
  });
  await unblock();
  t.equal((await result).kind, 'settled');
});

t.test('a black hole: goes on asking, and settles when it ends', async (t) => {
  const { shaky, proxy, stores } = faults;
  const all = await Promise.all(Array.from({ length: 20 }, running));
  proxy.pause();
  const results = Promise.all(all.map((one) => complete(one)));
  const [first] = all;
  await until(() => shaky.unsettled === all.length);
  // Until the first try has timed out, and its connection with it.
  const { connections } = proxy.counts();
  await until(() => proxy.counts().connections > connections);
  proxy.cutAll();
  proxy.resume();
  t.ok((await results).every((result) => result.kind === 'settled'));
  t.equal((await recordAt(stores[0], first as Reservation)).state, 'completed');
  t.equal(shaky.unsettled, 0);
});

t.test('closed in a black hole: over soon after the grace, everyone told', async (t) => {
  const { proxy, url, another } = faults;
  const dying = another({ url: proxy.through(url), timeouts: { connectMs: 500 } });
  const wanted = await running();
  await dying.check();
  proxy.pause();
  const results = [
    dying.completeIfHeld({ ...heldBy(wanted), answer: answer(), retentionMs }),
    dying.reserve(reservation()),
    dying.read([wanted]).catch((error) => error),
  ] as const;
  await new Promise((resolve) => setImmediate(resolve));
  const startedMs = performance.now();
  await dying.close(100);
  const tookMs = performance.now() - startedMs;
  t.match(await Promise.all(results), [
    { kind: 'unconfirmed' },
    { kind: 'unavailable' },
    { code: 'store_unavailable' },
  ]);
  proxy.cutAll();
  proxy.resume();
  // A connection that is being made is the one thing that cannot be cut; it has its own limit.
  t.ok(tookMs < 1_500, `${Math.round(tookMs)} ms`);
});
