import { randomUUID } from 'node:crypto';
import type { Test } from 'tap';
import { type State, states } from '../../../src/core/record.ts';
import type { Reservation } from '../../../src/store/store.ts';
import type { Harness } from '../contract.ts';
import { answer, heldBy, recordAt, reservation, reserved, retentionMs } from '../samples.ts';
import { bring, release } from './reserve.ts';

export async function sweepContract(t: Test, harness: Harness): Promise<void> {
  const [store, other] = harness.stores;
  const leaseMs = 60_000;
  t.beforeEach(() => harness.clear());

  const live = async (): Promise<string> => {
    const instance = randomUUID();
    await store.openLease(instance, leaseMs);
    return instance;
  };
  const stateOf = async (of: Reservation): Promise<State> => (await recordAt(store, of)).state;

  t.test('live work is not touched', async (t) => {
    const wanted = await reserved(store, { instance: await live() });
    t.strictSame(await store.sweep(100), []);
    t.equal(await stateOf(wanted), 'in_progress');
  });

  t.test('lease over: unknown, and says what it was', async (t) => {
    const instance = await live();
    const wanted = await reserved(store, { instance });
    await harness.endLease(instance);
    const { method, path, requestId } = wanted;
    t.strictSame(await other.sweep(100), [
      { ...heldBy(wanted), method, path, requestId, instance, reason: 'lease_over', to: 'unknown' },
    ]);
    t.equal(await stateOf(wanted), 'unknown');
    t.strictSame(await store.sweep(100), [], 'once');
  });

  t.test('no such instance: as if its lease were over', async (t) => {
    const wanted = await reserved(store, { instance: randomUUID() });
    t.match(await store.sweep(100), [{ attempt: wanted.attempt, reason: 'lease_over' }]);
  });

  t.test('a closed lease counts as over', async (t) => {
    const instance = await live();
    const wanted = await reserved(store, { instance });
    await store.closeLease(instance);
    t.match(await store.sweep(100), [{ attempt: wanted.attempt, reason: 'lease_over' }]);
  });

  t.test(
    'past its deadline and its lease over: it is the lease that says what happened, if leases count',
    async (t) => {
      const wanted = await reserved(store, { instance: randomUUID() });
      const other = await reserved(store, { instance: randomUUID() });
      await harness.moveTimes(wanted, { deadlineMs: -1 });
      t.match(await store.sweep(1), [{ attempt: wanted.attempt, reason: 'lease_over' }]);
      await harness.moveTimes(other, { deadlineMs: -1 });
      const uncertain = await store.sweep(100, () => false);
      t.match(uncertain, [{ attempt: other.attempt, instance: other.instance, reason: 'deadline_passed' }]);
    },
  );

  t.test('past its deadline: unknown, though the lease lives', async (t) => {
    const instance = await live();
    const wanted = await reserved(store, { instance });
    const neighbour = await reserved(store, { instance });
    await harness.moveTimes(wanted, { deadlineMs: -1 });
    t.match(await store.sweep(100), [{ attempt: wanted.attempt, reason: 'deadline_passed' }]);
    t.equal(await stateOf(wanted), 'unknown');
    t.equal(await stateOf(neighbour), 'in_progress');
  });

  t.test('a swept key is not free: nobody reserves it or takes it over', async (t) => {
    const wanted = await reserved(store);
    await store.sweep(100);
    const again = reservation({ scope: wanted.scope, key: wanted.key });
    t.match(await store.reserve(again), { kind: 'exists', record: { state: 'unknown' } });
    const record = await recordAt(store, wanted);
    t.match(await store.takeOverIfUnchanged(record, again), { kind: 'exists', record: { state: 'unknown' } });
  });

  t.test('the late answer of a swept attempt is accepted', async (t) => {
    const wanted = await reserved(store);
    await store.sweep(100);
    const result = await other.completeIfHeld({ ...heldBy(wanted), answer: answer(), retentionMs });
    t.equal(result.kind, 'settled');
    t.equal(await stateOf(wanted), 'completed');
  });

  t.test('only what is in progress is swept', async (t) => {
    for (const state of states.filter((one) => one !== 'in_progress')) {
      const wanted = await reserved(store);
      await bring(harness, wanted, state);
      await harness.moveTimes(wanted, { deadlineMs: -1_000 });
    }
    t.strictSame(await store.sweep(100), []);
  });

  t.test(
    'never sent: released while its own attempt holds the record and has no answer; nothing else is',
    async (t) => {
      const instance = await live();
      const may: readonly State[] = ['in_progress', 'unknown', 'dead_letter'];
      for (const state of states) {
        const wanted = await reserved(store, { instance });
        await bring(harness, wanted, state);
        const isReleased = may.includes(state);
        t.strictSame(
          await store.releaseIfNeverSent([{ ...heldBy(wanted), instance }]),
          [isReleased ? 'released' : 'not_held'],
          state,
        );
        t.equal(await stateOf(wanted), isReleased ? 'failed_retryable' : state);
      }
      const foreign = await reserved(store, { instance: await live() });
      const mine = await reserved(store, { instance });
      const absent = reservation({ instance });
      t.strictSame(
        await store.releaseIfNeverSent([
          { ...heldBy(foreign), instance },
          { ...heldBy(mine), attempt: randomUUID(), instance },
          { ...heldBy(absent), instance },
        ]),
        ['not_held', 'not_held', 'not_held'],
      );
      t.same([await stateOf(foreign), await stateOf(mine)], ['in_progress', 'in_progress']);
    },
  );

  t.test('never sent: of several instances at once, and one that is locked is said to be', async (t) => {
    const all = await Promise.all(Array.from({ length: 4 }, () => reserved(store)));
    const unblock = await harness.block(all[1] as Reservation);
    const given = all.map((one) => ({ ...heldBy(one), instance: one.instance }));
    const results = await store.releaseIfNeverSent(given).finally(unblock);
    t.strictSame(results, ['released', 'locked', 'released', 'released']);
    t.strictSame(await store.releaseIfNeverSent(given), ['not_held', 'released', 'not_held', 'not_held']);
  });

  t.test('at most as many as asked for, the oldest deadlines first', async (t) => {
    const all = await Promise.all(Array.from({ length: 5 }, () => reserved(store)));
    for (const [index, one] of all.entries())
      await harness.moveTimes(one, { deadlineMs: -1_000 * (index + 1) });
    const first = await store.sweep(2);
    t.strictSame(new Set(first.map((one) => one.attempt)), new Set([all[4]?.attempt, all[3]?.attempt]));
    t.equal((await store.sweep(100)).length, 3);
  });

  t.test('two sweepers at once: each record is swept by one of them', async (t) => {
    const all = await Promise.all(Array.from({ length: 60 }, () => reserved(store)));
    const swept = (await Promise.all([store.sweep(100), other.sweep(100), store.sweep(100)])).flat();
    t.equal(swept.length, all.length);
    t.equal(new Set(swept.map((one) => one.attempt)).size, all.length);
    t.equal((await store.read(all)).filter((record) => record?.state === 'unknown').length, all.length);
  });

  t.test('racing the answer, the answer wins or comes after; never the sweep over it', async (t) => {
    const all = await Promise.all(Array.from({ length: 40 }, () => reserved(store)));
    const [, ...results] = await Promise.all([
      other.sweep(100),
      ...all.map((one) => store.completeIfHeld({ ...heldBy(one), answer: answer(), retentionMs })),
    ]);
    t.ok(results.every((result) => result.kind === 'settled'));
    t.ok((await store.read(all)).every((record) => record?.state === 'completed'));
  });

  t.test('a new attempt of a key is judged by its own lease and deadline', async (t) => {
    const first = await reserved(store);
    await release(harness, first);
    const second = reservation({ scope: first.scope, key: first.key, instance: await live() });
    t.equal((await store.takeOverIfUnchanged(await recordAt(store, first), second)).kind, 'reserved');
    t.strictSame(await store.sweep(100), []);
  });

  t.test('a record that cannot be written now does not keep the others from being swept', async (t) => {
    const all = await Promise.all(Array.from({ length: 5 }, () => reserved(store)));
    const unblock = await harness.block(all[2] as Reservation);
    const swept = await store.sweep(100).finally(unblock);
    t.strictSame(
      new Set(swept.map((one) => one.attempt)),
      new Set(all.filter((_, index) => index !== 2).map((one) => one.attempt)),
    );
    t.match(await store.sweep(100), [{ attempt: all[2]?.attempt }]);
  });
}
