import { randomUUID } from 'node:crypto';
import type { Test } from 'tap';
import type { Harness } from '../contract.ts';
import { reserved } from '../samples.ts';

export async function leaseContract(t: Test, harness: Harness): Promise<void> {
  const [store, other] = harness.stores;
  const leaseMs = 60_000;

  t.test('opened, then renewed as often as one likes', async (t) => {
    const instance = randomUUID();
    await store.openLease(instance, leaseMs);
    t.equal(await store.renewLease(instance, leaseMs), true);
    t.equal(await other.renewLease(instance, leaseMs), true);
  });

  t.test('one that was never opened cannot be renewed, nor does renewing open it', async (t) => {
    const instance = randomUUID();
    t.equal(await store.renewLease(instance, leaseMs), false);
    t.equal(await store.renewLease(instance, leaseMs), false);
  });

  t.test('a lapsed lease never lives again', async (t) => {
    const instance = randomUUID();
    await store.openLease(instance, leaseMs);
    await harness.endLease(instance);
    t.equal(await store.renewLease(instance, leaseMs), false);
    t.equal(await other.renewLease(instance, leaseMs), false);
    await t.rejects(store.openLease(instance, leaseMs), { code: 'store_unavailable' });
    t.equal(await store.renewLease(instance, leaseMs), false);
  });

  t.test('closed: over at once; closing again, or what was never open, does no harm', async (t) => {
    const instance = randomUUID();
    await store.openLease(instance, leaseMs);
    await store.closeLease(instance);
    t.equal(await store.renewLease(instance, leaseMs), false);
    await store.closeLease(instance);
    await store.closeLease(randomUUID());
  });

  t.test('closing one that has lapsed does not move its end', async (t) => {
    const instance = randomUUID();
    await store.openLease(instance, leaseMs);
    await harness.endLease(instance);
    await store.closeLease(instance);
    t.equal(await store.renewLease(instance, leaseMs), false);
  });

  t.test('renewing moves the end: work under it stays untouched', async (t) => {
    const instance = randomUUID();
    await store.openLease(instance, 50);
    t.equal(await store.renewLease(instance, leaseMs), true);
    await reserved(store, { instance });
    t.strictSame(await other.sweep(100), []);
  });

  t.test('check answers', async () => {
    await store.check();
  });
}
