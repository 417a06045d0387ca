import t from 'tap';
import { type Faults, faultHarness } from './fault-harness.ts';
import { answer, heldBy, recordAt, reservation, reserved, retentionMs } from './samples.ts';

/** A loop finds its records with one statement and acts with another: what happens between the two must count. */
let faults: Faults;
t.before(async () => {
  faults = await faultHarness(t);
});
t.beforeEach(async () => {
  await faults.reset();
  await faults.clear();
});

/** Runs the pass, and `between` after it has found what to do and before it does it. */
async function interrupted<T>(
  which: 'sweep' | 'reap',
  pass: () => Promise<T>,
  between: () => Promise<unknown>,
): Promise<T> {
  const acting = faults.delayStatement(which);
  const result = pass();
  await acting.fired;
  await between();
  acting.release();
  return await result;
}

async function expiredRelease() {
  const [store] = faults.stores;
  const wanted = await reserved(store);
  await store.releaseIfHeld({ ...heldBy(wanted), status: null, error: 'test', retentionMs });
  await faults.moveTimes(wanted, { retainUntilMs: -1_000 });
  return wanted;
}

t.test('reap: a late answer of the same attempt came in between, and is kept', async (t) => {
  const { shaky, stores } = faults;
  const wanted = await expiredRelease();
  const reaped = await interrupted(
    'reap',
    () => shaky.reap(10),
    () => stores[0].completeIfHeld({ ...heldBy(wanted), answer: answer(), retentionMs }),
  );
  t.equal(reaped, 0);
  t.match(await recordAt(stores[0], wanted), { state: 'completed', expired: false });
});

t.test('reap: another attempt took the key in between, and keeps it', async (t) => {
  const { shaky, stores } = faults;
  const wanted = await expiredRelease();
  const next = reservation({ scope: wanted.scope, key: wanted.key });
  const previous = await recordAt(stores[0], wanted);
  const reaped = await interrupted(
    'reap',
    () => shaky.reap(10),
    () => stores[0].takeOverIfUnchanged(previous, next),
  );
  t.equal(reaped, 0);
  t.match(await recordAt(stores[0], wanted), { attempt: next.attempt, state: 'in_progress' });
});

t.test('sweep: the answer came in between, and stays', async (t) => {
  const { shaky, stores } = faults;
  const wanted = await reserved(stores[0]);
  const swept = await interrupted(
    'sweep',
    () => shaky.sweep(10),
    () => stores[0].completeIfHeld({ ...heldBy(wanted), answer: answer(), retentionMs }),
  );
  t.strictSame(swept, []);
  t.equal((await recordAt(stores[0], wanted)).state, 'completed');
});

t.test('sweep: a new attempt has the key by then, and is not touched', async (t) => {
  const { shaky, stores } = faults;
  const wanted = await reserved(stores[0]);
  const next = reservation({ scope: wanted.scope, key: wanted.key });
  const swept = await interrupted(
    'sweep',
    () => shaky.sweep(10),
    async () => {
      await stores[0].releaseIfHeld({ ...heldBy(wanted), status: null, error: 'test', retentionMs });
      await stores[0].takeOverIfUnchanged(await recordAt(stores[0], wanted), next);
    },
  );
  t.strictSame(swept, []);
  t.match(await recordAt(stores[0], wanted), { attempt: next.attempt, state: 'in_progress' });
});
