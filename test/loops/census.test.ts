import t from 'tap';
import { censusTaken } from '../../src/events.ts';
import { countOnce } from '../../src/loops/census.ts';
import type { Census } from '../../src/store/store.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { doubtful } from '../store/operator-harness.ts';
import { postgresHarness } from '../store/postgres-harness.ts';
import { answer, heldBy, reservation, reserved, retentionMs } from '../store/samples.ts';

t.test('a pass counts what is not settled, and the gauges say it', async (t) => {
  const harness = await postgresHarness(t);
  const [store] = harness.stores;
  const metrics = createMetrics(
    {
      attempts: () => 0,
      unsettled: () => 0,
      refusing: () => false,
      heldBytes: () => 0,
      heldLimitBytes: () => 0,
    },
    null,
  );
  t.teardown(metrics.end);
  const taken: Census[] = [];
  t.teardown(censusTaken.subscribe((census) => void taken.push(census)));
  const value = async (name: string) =>
    (await metrics.text())
      .split('\n')
      .find((line) => line.startsWith(`${name} `))
      ?.split(' ')[1];

  t.equal(await value('oncegate_unknown_oldest_seconds'), 'Nan', 'nothing is known yet');
  t.equal(await value('oncegate_records{state="unknown"}'), undefined);
  t.same(await countOnce({ store }), {}, 'it has acted on nothing');
  const none = {
    inProgress: 0,
    overdue: 0,
    unknown: 0,
    deadLetter: 0,
    oldestWaitingMs: null,
    lateAnswers: 0,
  };
  t.strictSame(taken.pop(), none);
  t.equal(await value('oncegate_unknown_oldest_seconds'), '0');

  await reserved(store);
  const overdue = await reserved(store);
  await harness.moveTimes(overdue, { deadlineMs: -1_000 });
  const settled = await reserved(store);
  await store.completeIfHeld({ ...heldBy(settled), answer: answer(), retentionMs });
  const oldest = await doubtful(store);
  await harness.query(
    `UPDATE oncegate.record SET reserved_at = reserved_at - interval '1 h' WHERE key = $1`,
    [oldest.key],
  );
  await doubtful(store);
  await harness.forceState(await doubtful(store), 'dead_letter');
  const { scope, key, attempt, requestId } = reservation();
  await store.keepLateAnswer({ scope, key, attempt, requestId, outcome: 'store', status: 201, answer: null });
  await countOnce({ store });
  const { oldestWaitingMs, ...counts } = taken.pop() as Census;
  t.strictSame(counts, { inProgress: 2, overdue: 1, unknown: 2, deadLetter: 1, lateAnswers: 1 });
  t.ok((oldestWaitingMs ?? 0) >= 3_600_000);
  for (const [name, wanted] of [
    ['oncegate_records{state="in_progress"}', '2'],
    ['oncegate_records{state="unknown"}', '2'],
    ['oncegate_records{state="dead_letter"}', '1'],
    ['oncegate_in_progress_overdue', '1'],
    ['oncegate_late_answers', '1'],
  ] as const)
    t.equal(await value(name), wanted, name);
  t.ok(Number(await value('oncegate_unknown_oldest_seconds')) >= 3_600);
});
