import t from 'tap';
import { carryOut } from '../../src/operator/plan.ts';
import { planPurge, replayedAfterPurgeMs } from '../../src/operator/purge.ts';
import { replayLifeMs } from '../../src/proxy/replay-cache.ts';
import { by, completed, doubtful } from '../store/operator-harness.ts';
import { recordAt, reserved } from '../store/samples.ts';
import { type Room, room, settings } from './room.ts';

let here: Room;
t.before(async () => {
  here = await room(t);
});

const seenNow = { epoch: null };

t.test('a stored answer is forgotten, once, and the key blocked', async (t) => {
  const { sidecar, store, seen } = here;
  const wanted = await completed(sidecar);
  const planned = planPurge(settings(), await seen(wanted), seenNow);
  if (planned.kind === 'may_not') throw new Error(planned.why.kind);
  t.ok((await recordAt(sidecar, wanted)).answer, 'a plan changes nothing');
  const result = await carryOut({ store }, planned.plan, by);
  t.match(result, { kind: 'done', record: { state: 'failed_retryable', blockedUntilMs: Number } });
  t.match(await recordAt(sidecar, wanted), { blocked: true, answer: null });
  t.match(await carryOut({ store }, planned.plan, by), { kind: 'refused' });
  t.match((await store.history(wanted)).audit, [{ ...by, action: 'purge' }]);
  t.strictSame(planPurge(settings(), await seen(wanted), seenNow), {
    kind: 'may_not',
    why: { kind: 'no_answer' },
  });
});

t.test('what is not settled is not purged', async (t) => {
  const { harness, sidecar, seen } = here;
  const running = await seen(await reserved(sidecar));
  t.match(planPurge(settings(), running, seenNow), {
    kind: 'may_not',
    why: { kind: 'in_progress', wait: { deadlineMs: running.deadlineMs } },
  });
  const wanted = await doubtful(sidecar);
  for (const state of ['unknown', 'dead_letter'] as const) {
    await harness.forceState(wanted, state);
    t.strictSame(planPurge(settings(), await seen(wanted), seenNow), {
      kind: 'may_not',
      why: { kind: 'unresolved' },
    });
  }
});

t.test('another epoch than the one seen is not purged, whatever its state', async (t) => {
  const record = await here.seen(await completed(here.sidecar));
  t.equal(planPurge(settings(), record, { epoch: record.epoch }).kind, 'may');
  const epoch = String(BigInt(record.epoch) - 1n);
  t.strictSame(planPurge(settings(), record, { epoch }), {
    kind: 'may_not',
    why: { kind: 'another_epoch', epoch },
  });
});

t.test('people are told of as long a replay as there can be', async (t) => {
  t.equal(replayedAfterPurgeMs, replayLifeMs);
});
