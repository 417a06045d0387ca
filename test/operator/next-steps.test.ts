import t from 'tap';
import { sourcesOf, states } from '../../src/core/record.ts';
import { nextSteps } from '../../src/operator/next-steps.ts';
import { planPurge } from '../../src/operator/purge.ts';
import { planResolve } from '../../src/operator/resolve.ts';
import type { RecordView } from '../../src/store/operator.ts';
import { completed, doubtful, given } from '../store/operator-harness.ts';
import { reserved } from '../store/samples.ts';
import { type Room, room, settings } from './room.ts';

let here: Room;
let sample: RecordView;
t.before(async () => {
  here = await room(t);
  sample = await here.seen(await doubtful(here.sidecar));
});

const stepsOf = (record: RecordView, changes = {}) => nextSteps(settings(changes), record);

t.test('what waits: complete or release; a retention where the routes are not known', async (t) => {
  const release = { kind: 'release' };
  t.strictSame(stepsOf(sample), [{ kind: 'complete', needsRetention: false }, release]);
  t.strictSame(stepsOf(sample, { knowsRoutes: false }), [
    { kind: 'complete', needsRetention: true },
    release,
  ]);
});

t.test('in progress: wait until its deadline and a sweep', async (t) => {
  const record = await here.seen(await reserved(here.sidecar));
  const { deadlineMs } = record;
  t.strictSame(stepsOf(record), [{ kind: 'wait', isWorkedOn: false, deadlineMs, sweepMs: 2_000 }]);
  t.match(stepsOf({ ...record, instanceAlive: true }), [{ kind: 'wait', isWorkedOn: true }]);
});

t.test('settled: purge; free: nothing, or wait for the end of the block', async (t) => {
  const { sidecar, store, seen } = here;
  const record = await seen(await completed(sidecar));
  t.strictSame(stepsOf(record), [{ kind: 'purge', retainUntilMs: record.retainUntilMs }]);
  await store.purgeIfUnchanged(record, { actor: 'ann', reason: 'wrong' });
  const purged = await seen(record);
  const { blockedUntilMs } = purged;
  t.strictSame(stepsOf(purged), [{ kind: 'blocked', blockedUntilMs }]);
  t.strictSame(stepsOf({ ...purged, seenAtMs: blockedUntilMs as number }), [{ kind: 'retry' }]);
});

t.test(
  'a step is offered exactly where its plan is not refused, and where the table of moves has it',
  async (t) => {
    const retention = { kind: 'of_route' } as const;
    const { answer } = given;
    for (const state of states) {
      const record = { ...sample, state };
      const offers = stepsOf(record).map(({ kind }) => kind);
      const plans = [
        planResolve(settings(), record, { resolution: { kind: 'complete', answer }, retention, epoch: null }),
        planResolve(settings(), record, { resolution: { kind: 'release' }, retention, epoch: null }),
        planPurge(settings(), record, { epoch: null }),
      ];
      const may = plans.flatMap((planned) => (planned.kind === 'may' ? [planned.plan.kind] : []));
      t.strictSame(
        offers.filter((kind) => ['complete', 'release', 'purge'].includes(kind)),
        may,
        state,
      );
      t.equal(may.includes('complete'), sourcesOf('completed', 'operator').includes(state), state);
      t.equal(
        may.includes('release') || may.includes('purge'),
        sourcesOf('failed_retryable', 'operator').includes(state),
        state,
      );
    }
  },
);
