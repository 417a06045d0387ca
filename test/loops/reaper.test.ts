import t from 'tap';
import { reapLimit, reapOnce } from '../../src/loops/reaper.ts';
import { postgresHarness } from '../store/postgres-harness.ts';
import { answer, heldBy, recordAt, reserved, retentionMs } from '../store/samples.ts';

t.test('what is past its retention goes, what may have run stays', async (t) => {
  const harness = await postgresHarness(t);
  const [store] = harness.stores;
  const error = 'x';
  const settled = await Promise.all(
    Array.from({ length: 4 }, async (_, i) => {
      const record = await reserved(store);
      if (i < 2) await store.completeIfHeld({ ...heldBy(record), answer: answer(), retentionMs });
      else await store.releaseIfHeld({ ...heldBy(record), status: null, error, retentionMs });
      if (i % 2 === 0) await harness.moveTimes(record, { retainUntilMs: -1 });
      return record;
    }),
  );
  const unknown = await reserved(store);
  await store.markUnknownIfHeld({ ...heldBy(unknown), status: null, error });
  const dead = await reserved(store);
  await store.markUnknownIfHeld({ ...heldBy(dead), status: null, error });
  await harness.forceState(dead, 'dead_letter');
  const running = await reserved(store);
  await harness.moveTimes(running, { deadlineMs: -1 });

  t.same(await reapOnce({ store }), { reaped: 2 });
  t.same(await reapOnce({ store }), { reaped: 0 });
  const found = await store.read([...settled, unknown, dead, running]);
  t.same(
    found.map((record) => record?.state ?? null),
    [null, 'completed', null, 'failed_retryable', 'unknown', 'dead_letter', 'in_progress'],
  );
});

t.test('two at once, one record locked: nothing waits and nothing is counted twice', async (t) => {
  const harness = await postgresHarness(t);
  const [a, b] = harness.stores;
  const records = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const record = await reserved(a);
      await a.completeIfHeld({ ...heldBy(record), answer: answer(), retentionMs });
      await harness.moveTimes(record, { retainUntilMs: -1 });
      return record;
    }),
  );
  const counts = await Promise.allSettled([reapOnce({ store: a }), reapOnce({ store: b })]);
  const first = counts.map((one) => (one.status === 'fulfilled' ? (one.value['reaped'] ?? 0) : 0));
  const rest = (await reapOnce({ store: a }))['reaped'] ?? 0;
  t.equal((first[0] ?? 0) + (first[1] ?? 0) + rest, records.length);
  t.equal(await harness.countRecords(), 0);
});

t.test('an epoch is larger after its record was reaped', async (t) => {
  const harness = await postgresHarness(t);
  const [store] = harness.stores;
  const record = await reserved(store);
  const before = BigInt((await recordAt(store, record)).epoch);
  await store.completeIfHeld({ ...heldBy(record), answer: answer(), retentionMs });
  await harness.moveTimes(record, { retainUntilMs: -1 });
  await reapOnce({ store });
  await reserved(store, { scope: record.scope, key: record.key });
  t.ok(BigInt((await recordAt(store, record)).epoch) > before);
});

t.test('a pass is bounded', async (t) => {
  const asked: number[] = [];
  const store = { reap: async (limit: number) => asked.push(limit) };
  await reapOnce({ store: store as never });
  t.same(asked, [reapLimit]);
});
