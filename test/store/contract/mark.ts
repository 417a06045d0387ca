import { randomUUID } from 'node:crypto';
import type { Test } from 'tap';
import type { Harness } from '../contract.ts';
import { answer, heldBy, recordAt, reservation, reserved, retentionMs, someId } from '../samples.ts';

export async function markContract(t: Test, harness: Harness): Promise<void> {
  const [store, other] = harness.stores;
  t.beforeEach(() => harness.clear());
  const marking = (instance = randomUUID()) => reserved(store, { marks: true, instance });

  t.test('once, by the attempt that has the record in progress', async (t) => {
    const wanted = await marking();
    t.match(await store.markDispatchedIfHeld({ ...heldBy(wanted), attempt: randomUUID() }), {
      kind: 'refused',
    });
    t.match(await store.markDispatchedIfHeld(heldBy(wanted)), { kind: 'marked' });
    t.match(await other.markDispatchedIfHeld(heldBy(wanted)), { kind: 'refused' }, 'not twice');
    t.match(await store.markDispatchedIfHeld({ ...someId(), attempt: randomUUID() }), { kind: 'refused' });
    const plain = await reserved(store);
    t.match(
      await store.markDispatchedIfHeld(heldBy(plain)),
      { kind: 'refused' },
      'it had not said that it would',
    );
    const settled = await marking();
    await store.markUnknownIfHeld({ ...heldBy(settled), status: null, error: 'x' });
    t.match(await store.markDispatchedIfHeld(heldBy(settled)), { kind: 'refused' });
  });

  t.test('not marked and its lease over: released, and its mark comes too late', async (t) => {
    const wanted = await marking();
    t.match(await other.sweep(100), [
      { attempt: wanted.attempt, reason: 'lease_over', to: 'failed_retryable' },
    ]);
    t.match(await recordAt(store, wanted), { state: 'failed_retryable', expired: false });
    t.match(await store.markDispatchedIfHeld(heldBy(wanted)), { kind: 'refused' });
    const next = reservation({ scope: wanted.scope, key: wanted.key, marks: true });
    t.match(await store.takeOverIfUnchanged(await recordAt(store, wanted), next), { kind: 'reserved' });
    t.match(await store.markDispatchedIfHeld(heldBy(wanted)), { kind: 'refused' }, 'of the attempt before');
    t.match(await store.markDispatchedIfHeld(heldBy(next)), { kind: 'marked' });
  });

  t.test('not marked and past its deadline: released, though the lease lives', async (t) => {
    const instance = randomUUID();
    await store.openLease(instance, 60_000);
    const wanted = await marking(instance);
    await harness.moveTimes(wanted, { deadlineMs: -1 });
    t.match(await store.sweep(100), [{ reason: 'deadline_passed', to: 'failed_retryable' }]);
    t.match(await store.markDispatchedIfHeld(heldBy(wanted)), { kind: 'refused' });
  });

  t.test('marked, or not to be marked: unknown, for it may have been sent', async (t) => {
    const marked = await marking();
    await store.markDispatchedIfHeld(heldBy(marked));
    const plain = await reserved(store);
    t.match(
      (await store.sweep(100)).map(({ to }) => to),
      ['unknown', 'unknown'],
    );
    for (const one of [marked, plain]) t.equal((await recordAt(store, one)).state, 'unknown');
  });

  t.test('who takes over does not inherit a mark, nor its absence', async (t) => {
    const unmarked = await marking();
    await store.releaseIfHeld({ ...heldBy(unmarked), status: null, error: 'x', retentionMs });
    const plain = reservation({ scope: unmarked.scope, key: unmarked.key });
    await store.takeOverIfUnchanged(await recordAt(store, unmarked), plain);
    t.match(
      await store.sweep(100),
      [{ to: 'unknown' }],
      'a plain attempt after one that marks may have been sent',
    );
    const marked = await marking();
    await store.markDispatchedIfHeld(heldBy(marked));
    await store.releaseIfHeld({ ...heldBy(marked), status: null, error: 'x', retentionMs });
    const next = reservation({ scope: marked.scope, key: marked.key, marks: true });
    await store.takeOverIfUnchanged(await recordAt(store, marked), next);
    t.match(await store.sweep(100), [{ to: 'failed_retryable' }]);
  });

  t.test('a late answer counts after a release too', async (t) => {
    const wanted = await marking();
    await store.sweep(100);
    t.match(await store.completeIfHeld({ ...heldBy(wanted), answer: answer(), retentionMs }), {
      kind: 'settled',
    });
  });

  t.test('mark against sweep: never both marked and released', async (t) => {
    for (let round = 0; round < 50; round += 1) {
      const wanted = await marking();
      const [mark] = await Promise.all([store.markDispatchedIfHeld(heldBy(wanted)), other.sweep(100)]);
      await other.sweep(100);
      const { state } = await recordAt(store, wanted);
      t.equal(state, mark.kind === 'marked' ? 'unknown' : 'failed_retryable', mark.kind);
    }
  });

  t.test('a record that somebody has locked does not hold its neighbours', async (t) => {
    const locked = await marking();
    const neighbour = await marking();
    const unblock = await harness.block(locked);
    const [first, second] = await Promise.all([
      store.markDispatchedIfHeld(heldBy(locked)),
      store.markDispatchedIfHeld(heldBy(neighbour)),
    ]);
    await unblock();
    t.equal(first.kind, 'unavailable');
    t.equal(second.kind, 'marked');
  });
}
