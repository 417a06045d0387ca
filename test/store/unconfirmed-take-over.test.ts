import t from 'tap';
import type { StoredRecord } from '../../src/core/record.ts';
import type { Reservation } from '../../src/store/store.ts';
import { type Faults, faultHarness } from './fault-harness.ts';
import { heldBy, recordAt, reservation, reserved, retentionMs } from './samples.ts';

/** Every branch in which a takeover's answer does not arrive. */
let faults: Faults;
t.before(async () => {
  faults = await faultHarness(t);
});
t.beforeEach(() => faults.reset());

async function released(): Promise<{ previous: StoredRecord; next: Reservation }> {
  const [store] = faults.stores;
  const first = await reserved(store);
  await release(first);
  const previous = await recordAt(store, first);
  return { previous, next: reservation({ scope: first.scope, key: first.key }) };
}

async function release(attempt: Reservation): Promise<void> {
  await faults.stores[0].releaseIfHeld({ ...heldBy(attempt), status: null, error: 'test', retentionMs });
}

t.test('the answer is lost after the commit: read back, confirmed by a write, reserved', async (t) => {
  const { shaky, sent, loseAnswer, stores } = faults;
  const { previous, next } = await released();
  loseAnswer('UPDATE');
  const result = await shaky.takeOverIfUnchanged(previous, next);
  t.equal(result.kind, 'reserved');
  const record = await recordAt(stores[0], next);
  t.match(record, { attempt: next.attempt, state: 'in_progress' });
  if (result.kind === 'reserved') t.equal(record.epoch, result.epoch);
  t.match(sent, { takeOver: 1, read: 1, confirm: 1 });
});

t.test('the statement never arrives: still as it was, sent again, reserved', async (t) => {
  const { shaky, sent, loseStatement, stores } = faults;
  const { previous, next } = await released();
  loseStatement('takeOver');
  t.equal((await shaky.takeOverIfUnchanged(previous, next)).kind, 'reserved');
  t.equal((await recordAt(stores[0], next)).attempt, next.attempt);
  t.match(sent, { takeOver: 2, read: 1, confirm: 0 });
});

t.test('lost twice on the way: unavailable, the record as it was', async (t) => {
  const { shaky, sent, loseStatement, stores } = faults;
  const { previous, next } = await released();
  loseStatement('takeOver');
  loseStatement('takeOver');
  t.match(await shaky.takeOverIfUnchanged(previous, next), { kind: 'unavailable', mayExist: true });
  t.strictSame(await recordAt(stores[0], next), previous);
  t.equal(sent.takeOver, 2);
});

t.test('the confirming write is not acknowledged: unavailable', async (t) => {
  const { shaky, sent, loseAnswer } = faults;
  const { previous, next } = await released();
  loseAnswer('UPDATE');
  loseAnswer('UPDATE');
  t.equal((await shaky.takeOverIfUnchanged(previous, next)).kind, 'unavailable');
  t.match(sent, { takeOver: 1, confirm: 1 });
});

t.test('the read-back is not answered: unavailable', async (t) => {
  const { shaky, loseAnswer } = faults;
  const { previous, next } = await released();
  loseAnswer('UPDATE');
  loseAnswer('SELECT');
  t.equal((await shaky.takeOverIfUnchanged(previous, next)).kind, 'unavailable');
});

t.test('lost while another took the key over: its record', async (t) => {
  const { shaky, delayStatement, stores } = faults;
  const { previous, next } = await released();
  const ours = delayStatement('takeOver');
  const result = shaky.takeOverIfUnchanged(previous, next);
  await ours.fired;
  const other = reservation({ scope: next.scope, key: next.key });
  t.equal((await stores[0].takeOverIfUnchanged(previous, other)).kind, 'reserved');
  ours.cut();
  t.match(await result, { kind: 'exists', record: { attempt: other.attempt } });
});

t.test('a statement that arrives after its attempt was released does not take the key again', async (t) => {
  const { shaky, sent, delayStatement, deliver, stores } = faults;
  const { previous, next } = await released();
  const ghost = delayStatement('takeOver');
  t.equal((await shaky.takeOverIfUnchanged(previous, next)).kind, 'reserved', 'by the second statement');
  t.equal(sent.takeOver, 2);
  await release(next);
  const before = await recordAt(stores[0], next);
  await deliver(ghost);
  t.strictSame(await recordAt(stores[0], next), before);
});

t.test('a ghost that comes first: its attempt has the key, and nobody else gets it', async (t) => {
  const { shaky, delayStatement, deliver, stores } = faults;
  const { previous, next } = await released();
  const first = delayStatement('takeOver');
  const result = shaky.takeOverIfUnchanged(previous, next);
  await first.fired;
  const second = delayStatement('takeOver');
  t.equal((await result).kind, 'unavailable');
  await deliver(first);
  await deliver(second);
  const other = reservation({ scope: next.scope, key: next.key });
  t.match(await stores[0].takeOverIfUnchanged(previous, other), {
    kind: 'exists',
    record: { attempt: next.attempt, state: 'in_progress' },
  });
});

t.test('the row is locked by somebody else: unavailable, soon', async (t) => {
  const { stores, block } = faults;
  const { previous, next } = await released();
  const unblock = await block(next);
  const startedMs = performance.now();
  const result = await stores[0].takeOverIfUnchanged(previous, next).finally(unblock);
  t.equal(result.kind, 'unavailable');
  t.ok(performance.now() - startedMs < 1_500);
});
