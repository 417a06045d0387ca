import { randomUUID } from 'node:crypto';
import type { Test } from 'tap';
import { states } from '../../../src/core/record.ts';
import type { Reservation } from '../../../src/store/store.ts';
import type { Harness } from '../contract.ts';
import { recordAt, reservation, reserved } from '../samples.ts';
import { bring, release } from './reserve.ts';

export async function reapContract(t: Test, harness: Harness): Promise<void> {
  const [store, other] = harness.stores;
  t.beforeEach(() => harness.clear());

  const expired = async (state: 'completed' | 'failed_retryable'): Promise<Reservation> => {
    const wanted = await reserved(store);
    await bring(harness, wanted, state);
    await harness.moveTimes(wanted, { retainUntilMs: -1 });
    return wanted;
  };

  t.test('takes what is completed or released and past its retention', async (t) => {
    const gone = [await expired('completed'), await expired('failed_retryable')];
    t.equal(await store.reap(100), 2);
    t.strictSame(await store.read(gone), [null, null]);
    t.equal(await harness.countRecords(), 0);
    t.equal(await store.reap(100), 0);
  });

  t.test('keeps every state before its time, and for ever what may have run', async (t) => {
    for (const state of states) await bring(harness, await reserved(store), state);
    const old = await reserved(store);
    await harness.moveTimes(old, { deadlineMs: -1_000_000_000 });
    t.equal(await store.reap(100), 0);
    t.equal(await harness.countRecords(), states.length + 1);
  });

  t.test('at most as many as asked for, the longest expired first', async (t) => {
    const all = [await expired('completed'), await expired('completed'), await expired('completed')];
    await harness.moveTimes(all[1] as Reservation, { retainUntilMs: -60_000 });
    t.equal(await store.reap(1), 1);
    t.strictSame(
      (await store.read(all)).map((record) => record !== null),
      [true, false, true],
    );
    t.equal(await store.reap(100), 2);
  });

  t.test('a reaped key is free again', async (t) => {
    const old = await expired('completed');
    await store.reap(100);
    t.equal((await other.reserve(reservation({ scope: old.scope, key: old.key }))).kind, 'reserved');
  });

  t.test('two reapers at once count each record once', async (t) => {
    await Promise.all(Array.from({ length: 30 }, () => expired('completed')));
    const counts = await Promise.all([store.reap(100), other.reap(100), store.reap(100)]);
    t.equal(
      counts.reduce((sum, count) => sum + count, 0),
      30,
    );
    t.equal(await harness.countRecords(), 0);
  });

  t.test('racing a takeover: the key has the new attempt, or no record and no owner', async (t) => {
    const all = await Promise.all(Array.from({ length: 40 }, () => expired('failed_retryable')));
    const records = await Promise.all(all.map((one) => recordAt(store, one)));
    const next = all.map(({ scope, key }) => reservation({ scope, key, instance: randomUUID() }));
    const [, ...results] = await Promise.all([
      other.reap(20),
      ...next.map((one, index) => store.takeOverIfUnchanged(records[index] as (typeof records)[number], one)),
      other.reap(40),
    ] as const);
    const after = await store.read(all);
    results.slice(0, next.length).forEach((result, index) => {
      const owned = typeof result === 'object' && result.kind === 'reserved';
      t.equal(after[index]?.attempt ?? null, owned ? next[index]?.attempt : null);
    });
  });

  t.test('a record that cannot be written now does not keep the others from being reaped', async (t) => {
    const all = await Promise.all(Array.from({ length: 5 }, () => expired('completed')));
    const unblock = await harness.block(all[2] as Reservation);
    t.equal(await store.reap(100).finally(unblock), 4);
    t.equal(await store.reap(100), 1);
  });

  t.test('an instance gone for long leaves too, without freeing its work', async (t) => {
    const instance = randomUUID();
    await store.openLease(instance, 60_000);
    const wanted = await reserved(store, { instance });
    t.equal(await store.reap(100), 0);
    t.equal(await store.renewLease(instance, 60_000), true, 'a live one stays');
    await harness.endLease(instance);
    await store.reap(100);
    t.equal(await store.renewLease(instance, 60_000), false);
    t.match(await store.sweep(100), [{ attempt: wanted.attempt, reason: 'lease_over' }]);
  });

  t.test('a released key that was taken over in time is not reaped', async (t) => {
    const first = await reserved(store);
    await release(harness, first);
    const second = reservation({ scope: first.scope, key: first.key });
    await store.takeOverIfUnchanged(await recordAt(store, first), second);
    await harness.moveTimes(first, { deadlineMs: -1_000 });
    t.equal(await store.reap(100), 0);
    t.equal((await recordAt(store, first)).attempt, second.attempt);
  });
}
