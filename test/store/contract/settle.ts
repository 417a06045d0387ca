import { randomBytes } from 'node:crypto';
import type { Test } from 'tap';
import { type State, type StoredAnswer, sourcesOf, states } from '../../../src/core/record.ts';
import type { Held, SettleResult, Store } from '../../../src/store/store.ts';
import type { Harness } from '../contract.ts';
import { answer, heldBy, recordAt, reservation, reserved, retentionMs } from '../samples.ts';
import { bring } from './reserve.ts';

type Target = 'completed' | 'failed_retryable' | 'unknown';

const settleTo: Record<Target, (store: Store, held: Held) => Promise<SettleResult>> = {
  completed: (store, held) => store.completeIfHeld({ ...held, answer: answer({ status: 299 }), retentionMs }),
  failed_retryable: (store, held) =>
    store.releaseIfHeld({ ...held, status: 503, error: 'released', retentionMs }),
  unknown: (store, held) => store.markUnknownIfHeld({ ...held, status: 502, error: 'cut' }),
};

const answers: Record<string, Partial<StoredAnswer>> = {
  'a body of every byte': { body: Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)) },
  'an empty body': { status: 204, body: Buffer.alloc(0) },
  'no body kept': { body: null },
  'a body of 70 kB': { body: randomBytes(70_000) },
  'a body of exactly 64 kB': { body: randomBytes(65_536) },
  'a body of 1 MB': { body: randomBytes(1_048_576) },
  'a body of 5 MB': { body: randomBytes(5 * 1_048_576) },
  'headers of every byte': { headers: Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)) },
  'no headers': { headers: Buffer.alloc(0) },
  'framed by close': { closeFramed: true },
};

export async function settleContract(t: Test, harness: Harness): Promise<void> {
  const [store, other] = harness.stores;

  for (const [name, changes] of Object.entries(answers)) {
    t.test(`kept byte for byte: ${name}`, async (t) => {
      const wanted = await reserved(store);
      const kept = answer(changes);
      const result = await store.completeIfHeld({ ...heldBy(wanted), answer: kept, retentionMs });
      t.equal(result.kind, 'settled');
      sameAnswer(t, (await recordAt(other, wanted)).answer, kept);
    });
  }

  t.test('many at once, of all kinds and sizes, each get their own', async (t) => {
    const all = await Promise.all(Array.from({ length: 120 }, () => reserved(store)));
    const bodies = all.map((_, index) => randomBytes(index % 10 === 0 ? 200_000 : index));
    const results = await Promise.all(
      all.map((one, index) => {
        const held = heldBy(one);
        const body = bodies[index] as Buffer;
        if (index % 3 === 0) return store.completeIfHeld({ ...held, answer: answer({ body }), retentionMs });
        return settleTo[index % 3 === 1 ? 'failed_retryable' : 'unknown'](store, held);
      }),
    );
    t.ok(results.every((result) => result.kind === 'settled'));
    const records = await other.read(all);
    const expected = ['completed', 'failed_retryable', 'unknown'];
    t.ok(records.every((record, index) => record?.state === expected[index % 3]));
    t.ok(
      records.every((record, index) =>
        index % 3 === 0
          ? record?.answer?.body?.equals(bodies[index] as Buffer) === true
          : record?.answer === null,
      ),
    );
  });

  for (const from of states) {
    for (const to of ['completed', 'failed_retryable', 'unknown'] as const) {
      const legal = sourcesOf(to, 'attempt').includes(from);
      t.test(`${from} → ${to} by its own attempt is ${legal ? 'legal' : 'refused'}`, async (t) => {
        const wanted = await reserved(store);
        await bring(harness, wanted, from);
        const before = await recordAt(store, wanted);
        const result = await settleTo[to](other, heldBy(wanted));
        // Asked for again with the same arguments it is settled again; a completion with another answer is not.
        const settled = legal || (from === to && to !== 'completed');
        t.equal(result.kind, settled ? 'settled' : 'refused');
        const after = await recordAt(store, wanted);
        if (settled) t.equal(after.state, to);
        else t.strictSame(after, before);
        if (result.kind === 'refused') t.strictSame(result.record, before);
      });

      t.test(`${from} → ${to} by another attempt is refused`, async (t) => {
        const wanted = await reserved(store);
        await bring(harness, wanted, from);
        const before = await recordAt(store, wanted);
        const { attempt } = reservation();
        const result = await settleTo[to](other, { ...heldBy(wanted), attempt });
        t.strictSame(result, { kind: 'refused', record: before });
        t.strictSame(await recordAt(store, wanted), before);
      });
    }
  }

  t.test('of a key without a record: refused, and none is made', async (t) => {
    for (const settle of Object.values(settleTo)) {
      const nobody = reservation();
      t.strictSame(await settle(store, heldBy(nobody)), { kind: 'refused', record: null });
      t.strictSame(await store.read([nobody]), [null]);
    }
  });

  t.test('again with the same answer: settled, nothing moves; with any other: refused', async (t) => {
    const wanted = await reserved(store);
    const kept = answer();
    const first = await store.completeIfHeld({ ...heldBy(wanted), answer: kept, retentionMs });
    const record = await recordAt(store, wanted);
    t.strictSame(await other.completeIfHeld({ ...heldBy(wanted), answer: kept, retentionMs }), first);
    const others: Partial<StoredAnswer>[] = [
      { status: 200 },
      { body: Buffer.from('other') },
      { body: null },
      { body: Buffer.alloc(0) },
      { headers: Buffer.from('other') },
      { closeFramed: true },
    ];
    for (const changes of others) {
      const result = await other.completeIfHeld({ ...heldBy(wanted), answer: answer(changes), retentionMs });
      t.strictSame(result, { kind: 'refused', record }, Object.keys(changes)[0] as string);
    }
    t.strictSame(await recordAt(store, wanted), record);
  });

  t.test('two settlements of one record at one moment: one is settled, the other is told', async (t) => {
    for (let round = 0; round < 10; round += 1) {
      const wanted = await reserved(store);
      const held = heldBy(wanted);
      const results = await Promise.all([
        settleTo.unknown(store, held),
        store.completeIfHeld({ ...held, answer: answer({ body: Buffer.from('a') }), retentionMs }),
        store.completeIfHeld({ ...held, answer: answer({ body: Buffer.from('b') }), retentionMs }),
        settleTo.failed_retryable(other, held),
      ]);
      const completions = results.slice(1, 3);
      t.equal(completions.filter((result) => result.kind === 'settled').length, 1);
      const record = await recordAt(store, wanted);
      t.equal(record.state, 'completed');
      t.equal(record.answer?.body?.toString(), completions[0]?.kind === 'settled' ? 'a' : 'b');
    }
  });

  t.test('retention counts from the completion, not from the reservation', async (t) => {
    const wanted = await reserved(store);
    await harness.moveTimes(wanted, { deadlineMs: -50_000_000 });
    const before = Date.now();
    const result = await store.completeIfHeld({ ...heldBy(wanted), answer: answer(), retentionMs: 5_000 });
    if (result.kind !== 'settled' || result.retainUntilMs === null) throw new Error(result.kind);
    // The store's clock is this machine's; the slack is for its resolution only.
    t.ok(result.retainUntilMs >= before + 5_000 - 5, 'not earlier');
    t.ok(result.retainUntilMs <= Date.now() + 5_000 + 5, 'not later');
    const record = await recordAt(store, wanted);
    t.equal(record.retainUntilMs, result.retainUntilMs);
    t.notOk(record.expired);
  });

  t.test('a released record is retained too; an unknown one has no end', async (t) => {
    const released = await reserved(store);
    const result = await settleTo.failed_retryable(store, heldBy(released));
    t.ok(result.kind === 'settled' && result.retainUntilMs !== null);
    const unknown = await reserved(store);
    t.strictSame(await settleTo.unknown(store, heldBy(unknown)), { kind: 'settled', retainUntilMs: null });
    t.equal((await recordAt(store, unknown)).retainUntilMs, null);
  });

  t.test('a late answer replaces a release, and its retention starts then', async (t) => {
    const wanted = await reserved(store);
    await store.releaseIfHeld({ ...heldBy(wanted), status: null, error: 'test', retentionMs: 1 });
    await harness.moveTimes(wanted, { retainUntilMs: -1_000 });
    const result = await other.completeIfHeld({ ...heldBy(wanted), answer: answer(), retentionMs });
    t.equal(result.kind, 'settled');
    t.match(await recordAt(store, wanted), { state: 'completed' satisfies State, expired: false });
  });
}

function sameAnswer(t: Test, kept: StoredAnswer | null, wanted: StoredAnswer): void {
  t.equal(kept?.status, wanted.status);
  t.equal(kept?.closeFramed, wanted.closeFramed);
  t.ok(kept?.headers.equals(wanted.headers), 'headers');
  t.equal(kept?.body === null, wanted.body === null);
  if (wanted.body !== null) t.ok(kept?.body?.equals(wanted.body), 'body');
}
