import t from 'tap';
import { type Clock, Lease } from '../../src/store/lease.ts';
import type { Store } from '../../src/store/store.ts';
import { type PostgresHarness, postgresHarness } from './postgres-harness.ts';
import { reserved } from './samples.ts';

const leaseMs = 60_000;

/** Both clocks by hand; they start at different numbers, as they do in life. */
class HandClock implements Clock {
  #monotonic = 5_000;
  #wall = 1_700_000_000_000;
  readonly monotonicMs = () => this.#monotonic;
  readonly wallMs = () => this.#wall;

  /** A machine that was suspended: only wall time went on. */
  suspended(ms: number): void {
    this.#wall += ms;
  }

  pass(ms: number): void {
    this.#monotonic += ms;
    this.#wall += ms;
  }

  stepWall(ms: number): void {
    this.#wall += ms;
  }
}

interface Scene extends PostgresHarness {
  readonly clock: HandClock;
  readonly lease: Lease;
}

let harness: PostgresHarness;
t.before(async () => {
  harness = await postgresHarness(t);
});

function scene(store: Store = harness.stores[0]): Scene {
  const clock = new HandClock();
  return { ...harness, clock, lease: new Lease(store, leaseMs, clock) };
}

async function opened(): Promise<Scene & { id: string }> {
  const all = scene();
  await all.lease.renew();
  return { ...all, id: current(all.lease) };
}

function current(lease: Lease): string {
  const id = lease.current();
  if (id === null) throw new Error('no lease');
  return id;
}

/** The same store, with something happening between a renewal's arrival and its answer. */
function meanwhile(during: () => unknown): Store {
  const [store] = harness.stores;
  return new Proxy(store, {
    get(target, name) {
      if (name === 'renewLease') {
        return async (instance: string, ms: number) => {
          const answer = await store.renewLease(instance, ms);
          await during();
          return answer;
        };
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

t.test('nothing may start before the first renewal', async (t) => {
  const { lease, stores } = scene();
  t.equal(lease.current(), null);
  t.equal(await lease.renew(), 'opened');
  const id = current(lease);
  t.ok(lease.mayStart(id));
  t.notOk(lease.mayStart('another'));
  t.equal(await stores[1].renewLease(id, leaseMs), true, 'the store has it');
});

t.test('renewed in time it keeps its id', async (t) => {
  const { lease, clock, id } = await opened();
  for (let round = 0; round < 5; round += 1) {
    clock.pass(leaseMs * 0.8);
    t.equal(await lease.renew(), 'renewed');
    t.equal(lease.current(), id);
  }
});

t.test('a tenth before its end nothing starts any more', async (t) => {
  const { lease, clock, id } = await opened();
  clock.pass(leaseMs * 0.9 - 1);
  t.ok(lease.mayStart(id));
  clock.pass(1);
  t.notOk(lease.mayStart(id));
  t.equal(lease.current(), null);
});

t.test('past its own deadline it takes a new id, though the store would still renew the old', async (t) => {
  const { lease, clock, id, stores } = await opened();
  const work = await reserved(stores[0], { instance: id });
  clock.pass(leaseMs * 0.95);
  t.equal(await lease.renew(), 'opened');
  t.not(lease.current(), id);
  t.notOk(lease.mayStart(work.instance), 'attempts of the old id never start');
  t.ok(lease.mayStart(current(lease)));
});

t.test('a lease that the store says is over: a new id', async (t) => {
  const { lease, id, endLease } = await opened();
  await endLease(id);
  t.ok(lease.mayStart(id), 'not known yet');
  t.equal(await lease.renew(), 'opened');
  t.not(current(lease), id);
});

t.test('a suspended machine: monotonic time stood still, wall time counts', async (t) => {
  const { lease, clock, id } = await opened();
  clock.suspended(leaseMs);
  t.equal(lease.current(), null);
  t.notOk(lease.mayStart(id));
  t.equal(await lease.renew(), 'opened');
  t.not(current(lease), id);
});

t.test('a wall clock set back does not make it longer; set forward it ends early', async (t) => {
  const back = await opened();
  back.clock.stepWall(-3_600_000);
  back.clock.pass(leaseMs * 0.89);
  t.ok(back.lease.mayStart(back.id));
  back.clock.pass(leaseMs * 0.02);
  t.notOk(back.lease.mayStart(back.id));
  const forward = await opened();
  forward.clock.stepWall(3_600_000);
  t.notOk(forward.lease.mayStart(forward.id));
});

t.test('an answer after the local deadline counts for nothing: a new id', async (t) => {
  const clock = new HandClock();
  let waits = 0;
  const store = meanwhile(() => clock.pass(waits));
  const lease = new Lease(store, leaseMs, clock);
  await lease.renew();
  const id = current(lease);
  clock.pass(leaseMs * 0.6);
  waits = leaseMs * 0.2;
  t.equal(await lease.renew(), 'renewed', 'late, but before the deadline');
  clock.pass(leaseMs * 0.6);
  waits = leaseMs * 0.4;
  t.equal(await lease.renew(), 'opened');
  t.not(current(lease), id);
});

t.test('the deadline counts from before the renewal was sent', async (t) => {
  const clock = new HandClock();
  const store = meanwhile(() => clock.pass(leaseMs * 0.5));
  const lease = new Lease(store, leaseMs, clock);
  await lease.renew();
  t.equal(await lease.renew(), 'renewed');
  clock.pass(leaseMs * 0.41);
  t.equal(lease.current(), null, 'half of it was gone when the answer came');
});

t.test('a renewal that failed changes nothing; the deadline stands', async (t) => {
  const { clock } = scene();
  let fails = false;
  const store = meanwhile(() => {
    if (fails) throw new Error('no answer');
  });
  const lease = new Lease(store, leaseMs, clock);
  await lease.renew();
  const id = current(lease);
  fails = true;
  clock.pass(leaseMs * 0.5);
  await t.rejects(lease.renew(), { message: 'no answer' });
  t.ok(lease.mayStart(id));
  clock.pass(leaseMs * 0.41);
  t.notOk(lease.mayStart(id), 'what the store may have renewed does not count');
});

t.test('opening fails: no lease', async (t) => {
  const closed = harness.another();
  await closed.close(0);
  const dead = new Lease(closed, leaseMs, new HandClock());
  await t.rejects(dead.renew(), { code: 'store_unavailable' });
  t.equal(dead.current(), null);
});

t.test('closed: nothing starts, the store sweeps at once, no renewal opens another', async (t) => {
  const { lease, id, stores } = await opened();
  const work = await reserved(stores[0], { instance: id });
  await lease.close();
  t.equal(lease.current(), null);
  t.ok((await stores[1].sweep(100)).some((one) => one.attempt === work.attempt));
  await t.rejects(lease.renew(), { code: 'store_unavailable' });
  t.equal(lease.current(), null);
  await lease.close();
});

t.test('closed while a renewal is under way: no lease comes of it', async (t) => {
  const clock = new HandClock();
  let lease: Lease;
  let close = false;
  const store = meanwhile(async () => {
    if (close) await lease.close();
  });
  lease = new Lease(store, leaseMs, clock);
  await lease.renew();
  close = true;
  await t.rejects(lease.renew(), { code: 'store_unavailable' });
  t.equal(lease.current(), null);
});

t.test('it says when the last write was sent that the store has acknowledged', async (t) => {
  const { lease, clock } = scene();
  t.equal(lease.renewedMs, Number.NEGATIVE_INFINITY);
  const openedMs = clock.monotonicMs();
  await lease.renew();
  t.equal(lease.renewedMs, openedMs);
  clock.pass(1_000);
  t.equal(lease.renewedMs, openedMs);
  await lease.renew();
  t.equal(lease.renewedMs, openedMs + 1_000);
  const slow = meanwhile(() => clock.pass(5_000));
  const late = new Lease(slow, leaseMs, clock);
  await late.renew();
  const sentMs = clock.monotonicMs();
  await late.renew();
  t.equal(late.renewedMs, sentMs, 'before it was sent, not when it was answered');
});

t.test('steady after one lease in which no two renewals were far apart', async (t) => {
  const { lease, clock } = await opened();
  const passing = async (ms: number) => {
    for (let left = ms; left > 0; left -= leaseMs / 3) {
      clock.pass(Math.min(left, leaseMs / 3));
      await lease.renew();
    }
  };
  await passing(leaseMs - 1);
  t.equal(lease.isSteady, false);
  clock.pass(1);
  t.equal(lease.isSteady, true);
  clock.pass(leaseMs * 0.4 - 1);
  t.equal(lease.isSteady, true);
  clock.pass(1);
  t.equal(lease.isSteady, false, 'the last renewal is too long ago');
  await lease.renew();
  t.equal(lease.isSteady, false, 'and for a lease after');
  await passing(leaseMs);
  t.equal(lease.isSteady, true);
  clock.suspended(leaseMs * 0.6);
  await lease.renew();
  t.equal(lease.isSteady, false, 'the machine slept, and perhaps those of others with it');
  clock.stepWall(10 * leaseMs);
  await lease.renew();
  await passing(leaseMs - 1);
  t.equal(lease.isSteady, false, 'a step of the wall clock does not cut it short');
  clock.pass(1);
  t.equal(lease.isSteady, true);
  await lease.close();
  t.equal(lease.isSteady, false);
});

t.test('a renewal that hangs is part of the outage', async (t) => {
  const clock = new HandClock();
  let hangMs = 0;
  const lease = new Lease(
    meanwhile(() => clock.pass(hangMs)),
    leaseMs,
    clock,
  );
  await lease.renew();
  for (let third = 0; third < 3; third += 1) {
    clock.pass(leaseMs / 3);
    await lease.renew();
  }
  t.equal(lease.isSteady, true);
  clock.pass(leaseMs / 3);
  hangMs = leaseMs / 4;
  t.equal(await lease.renew(), 'renewed');
  t.equal(lease.isSteady, false);
});
