import t from 'tap';
import { type Faults, faultHarness } from './fault-harness.ts';
import { heldBy, recordAt, reserved } from './samples.ts';

let faults: Faults;
t.before(async () => {
  faults = await faultHarness(t);
});
t.beforeEach(() => faults.reset());

t.test('the answer to a mark is lost: nothing may be sent, and the attempt can still release', async (t) => {
  const { shaky, loseAnswer, stores } = faults;
  const wanted = await reserved(shaky, { marks: true });
  loseAnswer('UPDATE');
  t.equal((await shaky.markDispatchedIfHeld(heldBy(wanted))).kind, 'unavailable');
  const settled = await shaky.releaseIfHeld({
    ...heldBy(wanted),
    status: null,
    error: 'not marked',
    retentionMs: 60_000,
  });
  t.equal(settled.kind, 'settled');
  t.equal((await recordAt(stores[0], wanted)).state, 'failed_retryable');
});
