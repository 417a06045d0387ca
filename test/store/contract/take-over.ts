import type { Test } from 'tap';
import { states } from '../../../src/core/record.ts';
import type { Harness } from '../contract.ts';
import { answer, heldBy, recordAt, reservation, reserved, retentionMs } from '../samples.ts';
import { bring, release } from './reserve.ts';

export async function takeOverContract(t: Test, harness: Harness): Promise<void> {
  const [store, other] = harness.stores;
  const next = (of: { scope: Buffer; key: string }) => reservation({ scope: of.scope, key: of.key });

  t.test('a released key gets a new attempt, a greater epoch and the new request', async (t) => {
    const first = await reserved(store, { hadCredentials: true });
    await release(harness, first);
    const previous = await recordAt(store, first);
    const second = next(first);
    const result = await other.takeOverIfUnchanged(previous, second);
    if (result.kind !== 'reserved') throw new Error(result.kind);
    t.ok(BigInt(result.epoch) > BigInt(previous.epoch));
    t.match(await recordAt(store, first), {
      attempt: second.attempt,
      epoch: result.epoch,
      state: 'in_progress',
      fingerprint: second.fingerprint,
      hadCredentials: false,
      expired: false,
      retainUntilMs: null,
      answer: null,
    });
  });

  t.test('a completed key only past its retention', async (t) => {
    const first = await reserved(store);
    await bring(harness, first, 'completed');
    const kept = await recordAt(store, first);
    t.match(await store.takeOverIfUnchanged(kept, next(first)), {
      kind: 'exists',
      record: { state: 'completed', attempt: first.attempt },
    });
    await harness.moveTimes(first, { retainUntilMs: -1 });
    const second = next(first);
    t.equal((await store.takeOverIfUnchanged(kept, second)).kind, 'reserved');
    t.match(await recordAt(store, first), { attempt: second.attempt, state: 'in_progress', answer: null });
  });

  t.test('a released key also past its retention', async (t) => {
    const first = await reserved(store);
    await release(harness, first);
    await harness.moveTimes(first, { retainUntilMs: -1_000 });
    const expired = await recordAt(store, first);
    t.ok(expired.expired);
    t.equal((await store.takeOverIfUnchanged(expired, next(first))).kind, 'reserved');
  });

  for (const state of states.filter((one) => one !== 'failed_retryable')) {
    t.test(`never from ${state}, whatever the caller believes`, async (t) => {
      const first = await reserved(store);
      await bring(harness, first, state);
      await harness.moveTimes(first, { deadlineMs: -1_000 });
      const record = await recordAt(store, first);
      for (const believed of states) {
        const result = await store.takeOverIfUnchanged(
          { ...record, state: believed, expired: true },
          next(first),
        );
        t.match(result, { kind: 'exists', record: { state, attempt: first.attempt } }, `as ${believed}`);
      }
    });
  }

  t.test('a delayed duplicate finds the guard gone, also after its own release', async (t) => {
    const first = await reserved(store);
    await release(harness, first);
    const previous = await recordAt(store, first);
    const second = next(first);
    t.equal((await store.takeOverIfUnchanged(previous, second)).kind, 'reserved');
    await release(harness, second);
    t.match(await store.takeOverIfUnchanged(previous, second), {
      kind: 'exists',
      record: { state: 'failed_retryable', attempt: second.attempt },
    });
    t.match(await store.takeOverIfUnchanged(previous, next(first)), {
      kind: 'exists',
      record: { state: 'failed_retryable', attempt: second.attempt },
    });
  });

  t.test('the previous attempt, epoch and state are each compared', async (t) => {
    const first = await reserved(store);
    await release(harness, first);
    const previous = await recordAt(store, first);
    const { attempt } = reservation();
    const epoch = String(BigInt(previous.epoch) + 1n);
    for (const wrong of [{ attempt }, { epoch }, { state: 'completed' as const }]) {
      const result = await store.takeOverIfUnchanged({ ...previous, ...wrong }, next(first));
      t.match(
        result,
        { kind: 'exists', record: { attempt: first.attempt } },
        Object.keys(wrong)[0] as string,
      );
    }
  });

  t.test('of many at once on two stores one wins', async (t) => {
    const first = await reserved(store);
    await release(harness, first);
    const previous = await recordAt(store, first);
    const all = Array.from({ length: 20 }, () => next(first));
    const results = await Promise.all(
      all.map((one, index) => (index % 2 ? store : other).takeOverIfUnchanged(previous, one)),
    );
    const winners = all.filter((_, index) => results[index]?.kind === 'reserved');
    t.equal(winners.length, 1);
    t.equal((await recordAt(store, first)).attempt, winners[0]?.attempt);
    const seen = results.filter((result) => result.kind === 'exists').map(({ record }) => record.attempt);
    t.strictSame(new Set(seen), new Set([winners[0]?.attempt]));
  });

  t.test('the old attempt can no longer settle, and is shown who has the key', async (t) => {
    const first = await reserved(store);
    await release(harness, first);
    const second = next(first);
    await store.takeOverIfUnchanged(await recordAt(store, first), second);
    const late = await other.completeIfHeld({ ...heldBy(first), answer: answer(), retentionMs });
    t.match(late, { kind: 'refused', record: { attempt: second.attempt, state: 'in_progress' } });
  });

  t.test('abandoned: nothing changes', async (t) => {
    const first = await reserved(store);
    await release(harness, first);
    const previous = await recordAt(store, first);
    const gone = reservation({ scope: first.scope, key: first.key, abandoned: () => true });
    t.strictSame(await store.takeOverIfUnchanged(previous, gone), { kind: 'abandoned' });
    t.strictSame(await recordAt(store, first), previous);
  });

  t.test('a record that went away is not made again', async (t) => {
    const first = await reserved(store);
    await release(harness, first);
    await harness.moveTimes(first, { retainUntilMs: -1_000 });
    const previous = await recordAt(store, first);
    await store.reap(100);
    t.equal((await store.takeOverIfUnchanged(previous, next(first))).kind, 'unavailable');
    t.strictSame(await store.read([first]), [null]);
  });
}
