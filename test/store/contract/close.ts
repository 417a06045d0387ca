import type { Test } from 'tap';
import type { Harness } from '../contract.ts';
import { answer, heldBy, recordAt, reservation, reserved, retentionMs } from '../samples.ts';

export async function closeContract(t: Test, harness: Harness): Promise<void> {
  const [store] = harness.stores;

  t.test('may be called twice, also at once', async () => {
    const closing = harness.another();
    await closing.check();
    await Promise.all([closing.close(1_000), closing.close(1_000)]);
    await closing.close(1_000);
  });

  t.test('one that was never used', async () => {
    await harness.another().close(1_000);
  });

  t.test('waits for what is under way', async (t) => {
    const closing = harness.another();
    const wanted = await reserved(closing);
    const settling = closing.completeIfHeld({ ...heldBy(wanted), answer: answer(), retentionMs });
    await closing.close(10_000);
    t.equal((await settling).kind, 'settled');
    t.equal((await recordAt(store, wanted)).state, 'completed');
  });

  t.test('waits only as long as it was told to; what has no answer by then is unconfirmed', async (t) => {
    const closing = harness.another();
    const wanted = await reserved(closing);
    const unblock = await harness.block(wanted);
    const settling = [
      closing.completeIfHeld({ ...heldBy(wanted), answer: answer(), retentionMs }),
      closing.markUnknownIfHeld({ ...heldBy(wanted), status: null, error: 'test' }),
    ];
    const startedMs = performance.now();
    await closing.close(200);
    t.ok(performance.now() - startedMs < 2_000);
    const results = await Promise.all(settling);
    t.strictSame(
      results.map((result) => result.kind),
      ['unconfirmed', 'unconfirmed'],
    );
    await unblock();
  });

  t.test('afterwards nothing is stored, and everyone is told', async (t) => {
    const closing = harness.another();
    const wanted = await reserved(closing);
    await closing.close(0);
    const held = heldBy(wanted);
    t.equal((await closing.completeIfHeld({ ...held, answer: answer(), retentionMs })).kind, 'unconfirmed');
    t.equal(
      (await closing.releaseIfHeld({ ...held, status: null, error: '', retentionMs })).kind,
      'unconfirmed',
    );
    t.equal((await closing.markUnknownIfHeld({ ...held, status: null, error: '' })).kind, 'unconfirmed');
    t.equal((await closing.reserve(reservation())).kind, 'unavailable');
    const record = await recordAt(store, wanted);
    t.equal((await closing.takeOverIfUnchanged(record, reservation(wanted))).kind, 'unavailable');
    t.equal(record.state, 'in_progress');
    const unavailable = { code: 'store_unavailable' };
    await t.rejects(closing.read([wanted]), unavailable);
    await t.rejects(closing.check(), unavailable);
    await t.rejects(closing.sweep(1), unavailable);
    await t.rejects(closing.reap(1), unavailable);
    await t.rejects(closing.renewLease(wanted.instance, 1), unavailable);
  });
}
