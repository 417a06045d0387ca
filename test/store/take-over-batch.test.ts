import t, { type Test } from 'tap';
import type { StoredRecord } from '../../src/core/record.ts';
import type { PostgresStore } from '../../src/store/postgres/postgres.ts';
import type { Reservation } from '../../src/store/store.ts';
import { type Faults, faultHarness } from './fault-harness.ts';
import { heldBy, recordAt, reservation, reserved, retentionMs } from './samples.ts';

/** Takeovers that come at once go as one statement, and each row has its own result. */
let faults: Faults;
t.before(async () => {
  faults = await faultHarness(t);
});
t.beforeEach(() => faults.reset());

interface TakeOver {
  readonly previous: StoredRecord;
  readonly next: Reservation;
}

function nextOf({ scope, key }: { scope: Buffer; key: string }): Reservation {
  return reservation({ scope, key });
}

async function release(held: Reservation): Promise<void> {
  await faults.stores[0].releaseIfHeld({ ...heldBy(held), status: null, error: 'test', retentionMs });
}

async function released(count: number): Promise<TakeOver[]> {
  const [store] = faults.stores;
  const one = async () => {
    const first = await reserved(store);
    await release(first);
    return { previous: await recordAt(store, first), next: nextOf(first) };
  };
  return await Promise.all(Array.from({ length: count }, one));
}

function takeAll(store: PostgresStore, all: readonly TakeOver[]) {
  return Promise.all(all.map(({ previous, next }) => store.takeOverIfUnchanged(previous, next)));
}

async function areOurs(t: Test, all: readonly TakeOver[]): Promise<void> {
  const records = await faults.stores[0].read(all.map((one) => one.next));
  t.strictSame(
    records.map((record) => [record?.attempt, record?.state]),
    all.map(({ next }) => [next.attempt, 'in_progress']),
  );
}

t.test('200 keys at once: one statement', async (t) => {
  const { shaky, sent } = faults;
  const all = await released(200);
  const results = await takeAll(shaky, all);
  t.ok(results.every((result) => result.kind === 'reserved'));
  const epochs = results.map((result) => (result.kind === 'reserved' ? result.epoch : null));
  const records = await faults.stores[0].read(all.map((one) => one.next));
  t.strictSame(
    records.map((record) => record?.epoch),
    epochs,
    'each has its own epoch',
  );
  await areOurs(t, all);
  t.match(sent, { takeOver: 1, read: 0 });
});

t.test('each row for itself: taken over, gone to somebody else, reaped', async (t) => {
  const { shaky, stores, query } = faults;
  const [ours, lost, gone] = (await released(3)) as [TakeOver, TakeOver, TakeOver];
  const other = nextOf(lost.next);
  t.equal((await stores[0].takeOverIfUnchanged(lost.previous, other)).kind, 'reserved');
  await query('DELETE FROM oncegate.record WHERE key = $1', [gone.next.key]);
  t.match(await takeAll(shaky, [ours, lost, gone]), [
    { kind: 'reserved' },
    { kind: 'exists', record: { attempt: other.attempt } },
    { kind: 'unavailable' },
  ]);
});

t.test('a row locked by somebody else does not hold its neighbours', async (t) => {
  const { shaky, block } = faults;
  const [locked, ...others] = (await released(20)) as [TakeOver, ...TakeOver[]];
  const unblock = await block(locked.next);
  const [refused, ...results] = await takeAll(shaky, [locked, ...others]).finally(unblock);
  t.equal(refused?.kind, 'unavailable');
  t.ok(results.every((result) => result.kind === 'reserved'));
  await areOurs(t, others);
});

t.test('twenty who saw the same record: one row is sent, one wins, the others see it', async (t) => {
  const { shaky, sent } = faults;
  const [{ previous, next }] = (await released(1)) as [TakeOver];
  const all = Array.from({ length: 20 }, () => ({ previous, next: nextOf(next) }));
  const [winner, ...others] = await takeAll(shaky, all);
  t.equal(winner?.kind, 'reserved');
  for (const result of others)
    t.match(result, { kind: 'exists', record: { attempt: all[0]?.next.attempt, state: 'in_progress' } });
  t.match(sent, { takeOver: 1, read: 0 });
});

t.test('two of one record in one batch, of which one saw an older attempt: the newer wins', async (t) => {
  const { shaky, sent, stores } = faults;
  const [{ previous: older, next: second }] = (await released(1)) as [TakeOver];
  t.equal((await stores[0].takeOverIfUnchanged(older, second)).kind, 'reserved');
  await release(second);
  const newer = await recordAt(stores[0], second);
  for (const order of ['older first', 'newer first']) {
    const previous = await recordAt(stores[0], second);
    const stale = { previous: older, next: nextOf(second) };
    const fresh = { previous, next: nextOf(second) };
    const results = await takeAll(shaky, order === 'older first' ? [stale, fresh] : [fresh, stale]);
    const [ofStale, ofFresh] = order === 'older first' ? results : results.toReversed();
    t.equal(ofFresh?.kind, 'reserved', order);
    t.match(ofStale, { kind: 'exists', record: { attempt: fresh.next.attempt } }, order);
    await release(fresh.next);
  }
  t.equal(sent.takeOver, 2);
  t.not((await recordAt(stores[0], second)).attempt, newer.attempt);
});

t.test('the answer to a whole batch is lost: read back, each row for itself', async (t) => {
  const { shaky, sent, loseAnswer, stores } = faults;
  const all = await released(3);
  const [lost, ...ours] = all as [TakeOver, ...TakeOver[]];
  const other = nextOf(lost.next);
  t.equal((await stores[0].takeOverIfUnchanged(lost.previous, other)).kind, 'reserved');
  loseAnswer('UPDATE');
  const results = await takeAll(shaky, all);
  t.match(results, [
    { kind: 'exists', record: { attempt: other.attempt } },
    { kind: 'reserved' },
    { kind: 'reserved' },
  ]);
  await areOurs(t, ours);
  t.match(sent, { takeOver: 1, read: 1, confirm: 1 });
});

t.test('a batch that never arrives: what is as it was is sent again, in one statement', async (t) => {
  const { shaky, sent, loseStatement } = faults;
  const all = await released(3);
  loseStatement('takeOver');
  t.ok((await takeAll(shaky, all)).every((result) => result.kind === 'reserved'));
  t.match(sent, { takeOver: 2, read: 1, confirm: 0 });
});

t.test('one row of those to be confirmed is locked: the others are ours', async (t) => {
  const { shaky, delayStatement, loseAnswer, block } = faults;
  const [locked, ...others] = (await released(4)) as [TakeOver, ...TakeOver[]];
  loseAnswer('UPDATE');
  const confirming = delayStatement('confirm');
  const results = takeAll(shaky, [locked, ...others]);
  await confirming.fired;
  const unblock = await block(locked.next);
  confirming.release();
  const [refused, ...ours] = await results.finally(unblock);
  t.equal(refused?.kind, 'unavailable', 'visible is not yet durable');
  t.ok(ours.every((result) => result.kind === 'reserved'));
  await areOurs(t, others);
});

t.test('a client that has gone by its turn takes nothing over, and whoever follows it does', async (t) => {
  const { shaky } = faults;
  const [{ previous, next }] = (await released(1)) as [TakeOver];
  const gone = { ...next, abandoned: () => true };
  const [first, second] = await takeAll(shaky, [
    { previous, next: gone },
    { previous, next: nextOf(next) },
  ]);
  t.strictSame(first, { kind: 'abandoned' });
  t.equal(second?.kind, 'reserved');
});
