import t, { type Test } from 'tap';
import { recordSwept } from '../../src/events.ts';
import { renewOnce } from '../../src/loops/lease-keeper.ts';
import { Sweeper, sweepLimit } from '../../src/loops/sweeper.ts';
import { Attempts } from '../../src/proxy/attempts.ts';
import { Lease } from '../../src/store/lease.ts';
import type { Held, Store, Swept } from '../../src/store/store.ts';
import { tcpProxy } from '../helpers/tcp-proxy.ts';
import { until } from '../helpers/until.ts';
import { type PostgresHarness, postgresHarness } from '../store/postgres-harness.ts';
import { answer, heldBy, recordAt, reservation, reserved, retentionMs } from '../store/samples.ts';

const leaseMs = 60_000;
const signal = new AbortController().signal;

/** A sweeper on a real store, with a lease and a clock that the test turns. */
async function starting(harness: PostgresHarness, store: Store = harness.stores[0]) {
  const clock = { ms: 0 };
  // Whole, so that differences are exact.
  const startMs = Math.floor(performance.now());
  const nowMs = () => startMs + clock.ms;
  const lease = new Lease(store, leaseMs, { monotonicMs: nowMs, wallMs: nowMs });
  await renewOnce({ lease });
  const attempts = new Attempts();
  const sweeper = new Sweeper({ store, lease, unsent: attempts.unsent, nowMs });
  /** Time passes, and the lease is renewed as it should be. */
  const passing = async (ms: number) => {
    for (let left = ms; left > 0; left -= leaseMs / 3) {
      clock.ms += Math.min(left, leaseMs / 3);
      await renewOnce({ lease });
    }
  };
  return { sweeper, lease, attempts, clock, passing, instance: lease.current() as string };
}

/** Past its first quiet time. */
async function sweeping(harness: PostgresHarness, store?: Store) {
  const scene = await starting(harness, store);
  await scene.passing(leaseMs);
  return scene;
}

/** Reserved by an attempt that was given up before anything was sent. */
async function unsent({ attempts, instance }: { attempts: Attempts; instance: string }, store: Store) {
  const attempt = attempts.open(instance, 1_000);
  const record = await reserved(store, { instance, attempt: attempt.id });
  attempts.closeUnsent(attempt, record);
  return record;
}

/** What a failover to an asynchronous standby leaves of a settled record. */
async function loseSettlement({ query }: PostgresHarness, { attempt }: Held) {
  await query(
    `UPDATE oncegate.record SET state = 'in_progress', status = NULL, headers = NULL, body = NULL, completed_at = NULL,
      retain_until = NULL WHERE attempt = $1`,
    [attempt],
  );
}

t.test('records of instances without a live lease become unknown', async (t) => {
  const harness = await postgresHarness(t);
  const [ours, theirs] = harness.stores;
  const { sweeper, instance, attempts } = await sweeping(harness);
  const mine = attempts.open(instance, 1_000);
  const running = await reserved(ours, { instance, attempt: mine.id });
  await theirs.openLease('00000000-0000-4000-8000-000000000001', leaseMs);
  const alive = await reserved(theirs, { instance: '00000000-0000-4000-8000-000000000001' });
  const lapsed = await reserved(theirs);
  const late = await reserved(theirs, { instance: '00000000-0000-4000-8000-000000000001' });
  await harness.moveTimes(late, { deadlineMs: -1 });
  const swept: Swept[] = [];
  t.teardown(recordSwept.subscribe((one) => swept.push(one)));

  t.same(await sweeper.runOnce(signal), { released: 0, swept: 2 });
  t.same(
    new Set(swept.map((one) => `${one.attempt} ${one.reason}`)),
    new Set([`${lapsed.attempt} lease_over`, `${late.attempt} deadline_passed`]),
  );
  const stateOf = async (id: Held) => (await recordAt(ours, id)).state;
  t.same(await Promise.all([running, alive, lapsed, late].map(stateOf)), [
    'in_progress',
    'in_progress',
    'unknown',
    'unknown',
  ]);

  const settled = await theirs.completeIfHeld({ ...heldBy(lapsed), answer: answer(), retentionMs });
  t.equal(settled.kind, 'settled', 'the late answer of the attempt itself counts');
  t.equal(await stateOf(lapsed), 'completed');
  t.same(await sweeper.runOnce(signal), { released: 0, swept: 0 });
});

t.test('of two sweepers at once one does it', async (t) => {
  const harness = await postgresHarness(t);
  const a = await sweeping(harness);
  const b = await sweeping(harness, harness.stores[1]);
  for (let i = 0; i < 10; i += 1) await reserved(harness.stores[0]);
  const counts = await Promise.all([a.sweeper.runOnce(signal), b.sweeper.runOnce(signal)]);
  // A row locked by the other is left for the next pass.
  const rest = await a.sweeper.runOnce(signal);
  t.equal(
    [...counts, rest].reduce((sum, one) => sum + (one['swept'] ?? 0), 0),
    10,
  );
});

/** A store whose way to the server the test rules. */
async function shaky(t: Test, harness: PostgresHarness) {
  const { hostname, port } = new URL(harness.url);
  const proxy = await tcpProxy(t, { host: hostname, port: Number(port) });
  return { proxy, store: harness.another({ url: proxy.through(harness.url) }) };
}

/** A store that fails while the test wants it to. */
function flaky(store: Store, isOut: (name: PropertyKey) => boolean): Store {
  return new Proxy(store, {
    get: (target, name) => {
      if (isOut(name)) return () => Promise.reject(new Error('out'));
      const member = Reflect.get(target, name) as unknown;
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

t.test('quiet about leases for one lease after its start', async (t) => {
  const harness = await postgresHarness(t);
  const { sweeper, clock, passing } = await starting(harness);
  await reserved(harness.stores[0]);
  await passing(leaseMs - 1);
  t.same(await sweeper.runOnce(signal), { released: 0, swept: 0 }, 'others may not have renewed yet');
  clock.ms += 1;
  t.same(await sweeper.runOnce(signal), { released: 0, swept: 1 });
});

t.test('what is past its deadline never waits for the quiet time', async (t) => {
  const harness = await postgresHarness(t);
  const [store] = harness.stores;
  const { sweeper } = await starting(harness);
  const lapsed = await reserved(store);
  const late = await Promise.all(Array.from({ length: 3 }, () => reserved(store)));
  for (const one of late) await harness.moveTimes(one, { deadlineMs: -1 });
  t.same(await sweeper.runOnce(signal), { released: 0, swept: 3 });
  t.equal((await recordAt(store, lapsed)).state, 'in_progress');
});

t.test('a pass that fails now and then keeps nothing from being swept', async (t) => {
  const harness = await postgresHarness(t);
  const [store] = harness.stores;
  let isOut = false;
  const { sweeper, passing } = await sweeping(
    harness,
    flaky(store, (name) => isOut && name === 'sweep'),
  );
  for (let round = 0; round < 3; round += 1) {
    await reserved(store);
    isOut = true;
    await t.rejects(sweeper.runOnce(signal), { message: 'out' });
    isOut = false;
    t.same(await sweeper.runOnce(signal), { released: 0, swept: 1 });
    await passing(1_000);
  }
});

t.test('a release that fails does not keep others from being swept', async (t) => {
  const harness = await postgresHarness(t);
  const [store] = harness.stores;
  let isOut = true;
  const scene = await sweeping(
    harness,
    flaky(store, (name) => isOut && name === 'releaseIfNeverSent'),
  );
  const orphan = await unsent(scene, store);
  const lapsed = await reserved(store);
  await t.rejects(scene.sweeper.runOnce(signal), { message: 'out' });
  t.equal((await recordAt(store, lapsed)).state, 'unknown');
  isOut = false;
  t.same(await scene.sweeper.runOnce(signal), { released: 1, swept: 0 }, 'and nothing was forgotten');
  t.equal((await recordAt(store, orphan)).state, 'failed_retryable');
});

t.test(
  'a short outage keeps nothing quiet, one that may have ended leases of others does for a lease',
  async (t) => {
    const harness = await postgresHarness(t);
    const [store] = harness.stores;
    const { sweeper, clock, lease, passing, instance } = await sweeping(harness);
    await reserved(store);
    clock.ms += leaseMs * 0.4;
    await renewOnce({ lease });
    t.same(
      await sweeper.runOnce(signal),
      { released: 0, swept: 1 },
      'nobody who lives can have lost its lease',
    );
    await reserved(store);
    clock.ms += leaseMs * 0.4 + 1;
    t.same(await sweeper.runOnce(signal), { released: 0, swept: 0 }, 'already before it is over');
    await renewOnce({ lease });
    t.equal(lease.current(), instance, 'ours has not lapsed');
    await passing(leaseMs - 1);
    t.same(await sweeper.runOnce(signal), { released: 0, swept: 0 });
    clock.ms += 1;
    t.same(await sweeper.runOnce(signal), { released: 0, swept: 1 });
  },
);

t.test('an outage for all: no record of a live peer is swept at its end', async (t) => {
  const harness = await postgresHarness(t);
  const { proxy, store } = await shaky(t, harness);
  const { sweeper, clock, lease, passing } = await sweeping(harness, store);
  const peer = new Lease(store, leaseMs);
  await renewOnce({ lease: peer });
  const theirs = await reserved(store, { instance: peer.current() as string });
  const late = await reserved(store);
  proxy.refuse(true);
  proxy.cutAll();
  await t.rejects(renewOnce({ lease }), { code: 'store_unavailable' });
  await t.rejects(sweeper.runOnce(signal), { code: 'store_unavailable' });
  // As long as the outage lasted.
  clock.ms += leaseMs;
  await harness.endLease(theirs.instance);
  await harness.moveTimes(late, { deadlineMs: -1 });
  proxy.refuse(false);
  const first = await until('the store answers', () => sweeper.runOnce(signal).catch(() => null));
  t.same(first, { released: 0, swept: 1 }, 'what is past its deadline, before anybody has renewed');
  await renewOnce({ lease });
  await passing(leaseMs - 1);
  t.same(await sweeper.runOnce(signal), { released: 0, swept: 0 });
  t.equal((await recordAt(harness.stores[0], theirs)).state, 'in_progress', 'its answer may come');
  clock.ms += 1;
  t.same(await sweeper.runOnce(signal), { released: 0, swept: 1 }, 'one lease later nobody has it');
});

t.test('a look that hung through an outage: what it found about leases does not count', async (t) => {
  const harness = await postgresHarness(t);
  const { proxy, store } = await shaky(t, harness);
  const { sweeper, clock } = await sweeping(harness, store);
  const lapsed = await reserved(store);
  const look = proxy.onceClientSends('AS is_lease_over', 'hold');
  const pass = sweeper.runOnce(signal);
  await look.fired;
  clock.ms += leaseMs / 2 + 1;
  look.release();
  t.same(await pass, { released: 0, swept: 0 });
  t.equal((await recordAt(store, lapsed)).state, 'in_progress');
});

t.test('our own records that were never sent are released, also in the quiet time', async (t) => {
  const harness = await postgresHarness(t);
  const [store] = harness.stores;
  const scene = await starting(harness);
  const { sweeper, attempts, instance } = scene;
  const running = attempts.open(instance, 1_000);
  const known = await reserved(store, { instance, attempt: running.id });
  const orphan = await unsent(scene, store);
  t.same(await sweeper.runOnce(signal), { released: 1, swept: 0 });
  t.equal((await recordAt(store, orphan)).state, 'failed_retryable');
  t.equal((await recordAt(store, known)).state, 'in_progress');
  t.equal(attempts.unsent.size, 0);
  attempts.close(running);
  t.same(await sweeper.runOnce(signal), { released: 0, swept: 0 }, 'over, and may have run: not released');
  t.equal((await recordAt(store, known)).state, 'in_progress');
});

t.test(
  'what settled an attempt is lost in a failover: not released, and unknown past its deadline',
  async (t) => {
    const harness = await postgresHarness(t);
    const [store] = harness.stores;
    const { sweeper, attempts, instance } = await sweeping(harness);
    const attempt = attempts.open(instance, 1_000);
    const record = await reserved(store, { instance, attempt: attempt.id });
    await store.completeIfHeld({ ...heldBy(record), answer: answer(), retentionMs });
    attempts.close(attempt);
    await loseSettlement(harness, record);
    t.same(await sweeper.runOnce(signal), { released: 0, swept: 0 });
    t.match(await recordAt(store, record), { state: 'in_progress', attempt: attempt.id });
    await harness.moveTimes(record, { deadlineMs: -1 });
    t.same(await sweeper.runOnce(signal), { released: 0, swept: 1 });
    t.equal((await recordAt(store, record)).state, 'unknown');
  },
);

t.test(
  'an outage that outlasted the lease: what was never sent under the old id is released, too',
  async (t) => {
    const harness = await postgresHarness(t);
    const [store] = harness.stores;
    const scene = await starting(harness);
    const { sweeper, lease, attempts, instance } = scene;
    const running = attempts.open(instance, 1_000);
    const known = await reserved(store, { instance, attempt: running.id });
    const orphan = await unsent(scene, store);
    const elsewhere = await reserved(store);
    await harness.endLease(instance);
    await renewOnce({ lease });
    t.not(lease.current(), instance, 'a new id');
    t.same(await sweeper.runOnce(signal), { released: 1, swept: 0 });
    const stateOf = async (id: Held) => (await recordAt(store, id)).state;
    t.same(await Promise.all([orphan, known, elsewhere].map(stateOf)), [
      'failed_retryable',
      'in_progress',
      'in_progress',
    ]);
  },
);

t.test('another instance has called it unknown before we come: released all the same', async (t) => {
  const harness = await postgresHarness(t);
  const [store, other] = harness.stores;
  const scene = await sweeping(harness);
  const orphan = await unsent(scene, store);
  await harness.moveTimes(orphan, { deadlineMs: -1 });
  t.match(await other.sweep(sweepLimit), [{ attempt: orphan.attempt, to: 'unknown' }]);
  t.same(await scene.sweeper.runOnce(signal), { released: 1, swept: 0 });
  t.equal((await recordAt(store, orphan)).state, 'failed_retryable');
});

t.test('a reservation that arrives after it was given up is released when it has come', async (t) => {
  const harness = await postgresHarness(t);
  const [store] = harness.stores;
  const { sweeper, clock, lease, attempts, instance } = await starting(harness);
  const late = attempts.open(instance, 1_000);
  const wanted = reservation({ instance, attempt: late.id });
  attempts.closeUnsent(late, wanted);
  t.same(await sweeper.runOnce(signal), { released: 0, swept: 0 });
  clock.ms = 299_000;
  await renewOnce({ lease });
  t.same(await sweeper.runOnce(signal), { released: 0, swept: 0 });
  t.equal(attempts.unsent.size, 1, 'it may still be on its way');
  await reserved(store, wanted);
  t.same(await sweeper.runOnce(signal), { released: 1, swept: 0 });
  t.equal((await recordAt(store, wanted)).state, 'failed_retryable');
});

t.test('one that never arrives is forgotten, but not while the store acknowledges nothing', async (t) => {
  const harness = await postgresHarness(t);
  const [store] = harness.stores;
  const scene = await starting(harness);
  const { sweeper, clock, lease, attempts, instance } = scene;
  const lost = attempts.open(instance, 1_000);
  attempts.closeUnsent(lost, reservation());
  const locked = await unsent(scene, store);
  const unblock = await harness.block(locked);
  clock.ms = 1_000_000;
  t.same(await sweeper.runOnce(signal), { released: 0, swept: 0 });
  t.equal(attempts.unsent.size, 2, 'its commit may wait for a standby, as all others would');
  await renewOnce({ lease });
  t.same(await sweeper.runOnce(signal), { released: 0, swept: 0 });
  t.match(attempts.unsent.all(), [{ attempt: locked.attempt }], 'what is there and locked is not forgotten');
  await unblock();
  t.same(await sweeper.runOnce(signal), { released: 1, swept: 0 });
  t.equal(attempts.unsent.size, 0);
});

t.test('an outage leaves many: all are released in one pass', async (t) => {
  const harness = await postgresHarness(t);
  const [store] = harness.stores;
  const scene = await sweeping(harness);
  await Promise.all(Array.from({ length: 1_100 }, () => unsent(scene, store)));
  t.same(await scene.sweeper.runOnce(signal), { released: 1_100, swept: 0 });
  t.equal(scene.attempts.unsent.size, 0);
});

t.test('one that somebody has locked holds nothing up', async (t) => {
  const harness = await postgresHarness(t);
  const [store] = harness.stores;
  const scene = await sweeping(harness);
  const locked = await unsent(scene, store);
  const lapsed = await reserved(store);
  const unblock = await harness.block(locked);
  t.same(await scene.sweeper.runOnce(signal), { released: 0, swept: 1 });
  t.equal((await recordAt(store, lapsed)).state, 'unknown');
  await unblock();
  t.same(await scene.sweeper.runOnce(signal), { released: 1, swept: 0 });
});
