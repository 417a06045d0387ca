import t from 'tap';
import { recordSwept } from '../../src/events.ts';
import { renewOnce } from '../../src/loops/lease-keeper.ts';
import { Sweeper, sweepLimit } from '../../src/loops/sweeper.ts';
import { Attempts } from '../../src/proxy/attempts.ts';
import { Lease } from '../../src/store/lease.ts';
import type { Held, Store, Swept } from '../../src/store/store.ts';
import { type PostgresHarness, postgresHarness } from '../store/postgres-harness.ts';
import { answer, heldBy, recordAt, reserved, retentionMs } from '../store/samples.ts';

const leaseMs = 60_000;
const signal = new AbortController().signal;

/** A sweeper on a real store, past its first quiet time, with a lease and a clock that the test turns. */
async function sweeping(harness: PostgresHarness, store: Store = harness.stores[0]) {
  const lease = new Lease(harness.stores[0], leaseMs);
  await renewOnce({ lease });
  const attempts = new Attempts();
  const clock = { ms: 0 };
  const sweeper = new Sweeper({ store, lease, attempts, leaseMs, nowMs: () => clock.ms });
  clock.ms = leaseMs;
  return { sweeper, lease, attempts, clock, instance: lease.current() as string };
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

t.test('quiet for one lease after its start and after the store was out', async (t) => {
  const harness = await postgresHarness(t);
  let isOut = false;
  const flaky = new Proxy(harness.stores[0], {
    get: (store, name) => {
      if (isOut && name === 'sweep') return () => Promise.reject(new Error('out'));
      const member = Reflect.get(store, name) as unknown;
      return typeof member === 'function' ? member.bind(store) : member;
    },
  });
  const { sweeper, clock } = await sweeping(harness, flaky);
  await reserved(harness.stores[0]);
  clock.ms = leaseMs - 1;
  t.same(await sweeper.runOnce(signal), { released: 0, swept: 0 }, 'others may not have renewed yet');
  clock.ms = leaseMs;
  isOut = true;
  await t.rejects(sweeper.runOnce(signal), { message: 'out' });
  isOut = false;
  clock.ms = 2 * leaseMs - 1;
  t.same(await sweeper.runOnce(signal), { released: 0, swept: 0 }, 'quiet again');
  clock.ms = 2 * leaseMs;
  t.same(await sweeper.runOnce(signal), { released: 0, swept: 1 });
});

t.test('our own records that were never sent are released, also in the quiet time', async (t) => {
  const harness = await postgresHarness(t);
  const [store] = harness.stores;
  const { sweeper, clock, attempts, instance } = await sweeping(harness);
  clock.ms = 0;
  const running = attempts.open(instance, 1_000);
  const known = await reserved(store, { instance, attempt: running.id });
  const orphan = await reserved(store, { instance });
  t.same(await sweeper.runOnce(signal), { released: 1, swept: 0 });
  t.equal((await recordAt(store, orphan)).state, 'failed_retryable');
  t.equal((await recordAt(store, known)).state, 'in_progress');
  attempts.leaveUnsettled(running);
  t.equal(attempts.size, 0);
  t.same(await sweeper.runOnce(signal), { released: 0, swept: 0 }, 'may have run: not an orphan');
  t.equal((await recordAt(store, known)).state, 'in_progress');
});

t.test(
  'an outage that outlasted the lease: what was never sent under the old id is released, too',
  async (t) => {
    const harness = await postgresHarness(t);
    const [store] = harness.stores;
    const { sweeper, clock, lease, attempts, instance } = await sweeping(harness);
    clock.ms = 0;
    const running = attempts.open(instance, 1_000);
    const known = await reserved(store, { instance, attempt: running.id });
    const orphan = await reserved(store, { instance });
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

t.test('an attempt that is settled as unknown while the list is on its way is not released', async (t) => {
  const harness = await postgresHarness(t);
  const [store] = harness.stores;
  let duringList: () => Promise<void> = async () => {};
  const asked: PropertyKey[] = [];
  const listing = new Proxy(store, {
    get: (target, name) => {
      asked.push(name);
      const member = Reflect.get(target, name) as unknown;
      if (name !== 'listInProgress') return typeof member === 'function' ? member.bind(target) : member;
      return async (instance: string, limit: number) => {
        const held = await target.listInProgress(instance, limit);
        await duringList();
        return held;
      };
    },
  });
  const { sweeper, attempts, instance } = await sweeping(harness, listing);
  const attempt = attempts.open(instance, 1_000);
  const record = await reserved(store, { instance, attempt: attempt.id });
  duringList = async () => {
    duringList = async () => {};
    await store.markUnknownIfHeld({ ...heldBy(record), status: null, error: 'cut' });
    attempts.close(attempt);
  };
  t.same(await sweeper.runOnce(signal), { released: 0, swept: 0 });
  t.equal((await recordAt(store, record)).state, 'unknown', 'its request may have run');
  t.notOk(asked.includes('releaseIfNeverSent'), 'nor is it left to the guard of the store');
});

t.test('a busy instance still finds the one that was lost', async (t) => {
  const harness = await postgresHarness(t);
  const [store] = harness.stores;
  const { sweeper, attempts, instance } = await sweeping(harness);
  const running = Array.from({ length: sweepLimit + 50 }, () => attempts.open(instance, 1_000));
  await Promise.all(running.map(({ id }) => reserved(store, { instance, attempt: id })));
  const lost = await reserved(store, { instance });
  t.same(await sweeper.runOnce(signal), { released: 1, swept: 0 });
  t.equal((await recordAt(store, lost)).state, 'failed_retryable');
});

t.test('an orphan that somebody has locked holds nothing up', async (t) => {
  const harness = await postgresHarness(t);
  const [store] = harness.stores;
  const { sweeper, instance } = await sweeping(harness);
  const locked = await reserved(store, { instance });
  const lapsed = await reserved(store);
  const unblock = await harness.block(locked);
  t.same(await sweeper.runOnce(signal), { released: 0, swept: 1 });
  t.equal((await recordAt(store, lapsed)).state, 'unknown');
  await unblock();
  t.same(await sweeper.runOnce(signal), { released: 1, swept: 0 });
});

t.test('without a lease nothing is ours', async (t) => {
  const harness = await postgresHarness(t);
  const [store] = harness.stores;
  const { lease, instance, attempts } = await sweeping(harness);
  await reserved(store, { instance });
  await lease.close();
  const sweeper = new Sweeper({ store, lease, attempts, leaseMs, nowMs: () => 0 });
  t.same(await sweeper.runOnce(signal), { released: 0, swept: 0 });
});
