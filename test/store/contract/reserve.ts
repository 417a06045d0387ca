import { randomUUID } from 'node:crypto';
import type { Test } from 'tap';
import { type State, states } from '../../../src/core/record.ts';
import type { Reservation, ReserveResult } from '../../../src/store/store.ts';
import type { Harness } from '../contract.ts';
import {
  answer,
  heldBy,
  recordAt,
  reservation,
  reserved,
  retentionMs,
  someFingerprint,
  someId,
} from '../samples.ts';

export async function reserveContract(t: Test, harness: Harness): Promise<void> {
  const [store, other] = harness.stores;

  t.test('of a hundred at once on two stores exactly one reserves, the others see its record', async (t) => {
    const id = someId();
    const all = Array.from({ length: 100 }, () => reservation(id));
    const results = await Promise.all(all.map((one, index) => (index % 2 ? store : other).reserve(one)));
    const winners = all.filter((_, index) => results[index]?.kind === 'reserved');
    t.equal(winners.length, 1);
    const losers = results.filter((result) => result.kind !== 'reserved');
    t.strictSame(
      new Set(losers.map((result) => (result.kind === 'exists' ? result.record.attempt : result.kind))),
      new Set([winners[0]?.attempt]),
    );
  });

  t.test('many keys at once, on two stores, each asked for twice on both', async (t) => {
    const ids = Array.from({ length: 300 }, someId);
    const asked = [...ids, ...ids].flatMap((id) => [
      { id, by: store },
      { id, by: other },
    ]);
    const results = await Promise.all(asked.map(({ id, by }) => by.reserve(reservation(id))));
    const winsOf = new Map(ids.map((id) => [id, 0]));
    results.forEach((result, index) => {
      const { id } = asked[index] as { id: (typeof ids)[number] };
      if (result.kind === 'reserved') winsOf.set(id, (winsOf.get(id) ?? 0) + 1);
      else if (result.kind !== 'exists') t.fail(result.kind);
    });
    t.ok([...winsOf.values()].every((wins) => wins === 1));
  });

  t.test('one key in two scopes, and two keys in one scope, are different records', async (t) => {
    const { scope, key } = someId();
    const ids = [
      { scope, key },
      { scope: someId().scope, key },
      { scope, key: `${key}x` },
      { scope, key: key.toUpperCase() },
    ];
    const results = await Promise.all(ids.map((id) => store.reserve(reservation(id))));
    t.ok(results.every((result) => result.kind === 'reserved'));
  });

  t.test('keys of every length and byte that is legal', async (t) => {
    const visible = Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index)).join('');
    for (const key of ['k', 'x'.repeat(255), visible, `'"\\{},NULL`]) {
      const wanted = await reserved(store, { key });
      t.equal((await recordAt(other, wanted)).attempt, wanted.attempt, key.slice(0, 20));
    }
  });

  t.test('callers of one key at one moment each keep their own fingerprint', async (t) => {
    const id = someId();
    const all = Array.from({ length: 3 }, () => reservation({ ...id, hadCredentials: true }));
    const [first, ...rest] = await Promise.all(all.map((one) => store.reserve(one)));
    t.equal(first?.kind, 'reserved');
    for (const result of rest) {
      if (result.kind !== 'exists') throw new Error(result.kind);
      const seen = await recordAt(store, id);
      t.strictSame(result.record, seen, 'what a follower sees is the record');
      t.strictSame(result.record.fingerprint, all[0]?.fingerprint);
    }
  });

  t.test('abandoned: nothing is stored, and the next caller of the same moment leads', async (t) => {
    const id = someId();
    const gone = reservation({ ...id, abandoned: () => true });
    const goneToo = reservation({ ...id, abandoned: () => true });
    const here = reservation(id);
    const late = reservation(id);
    const results = await Promise.all([gone, goneToo, here, late].map((one) => store.reserve(one)));
    t.strictSame(
      results.map((result) => result.kind),
      ['abandoned', 'abandoned', 'reserved', 'exists'],
    );
    t.equal((await recordAt(store, id)).attempt, here.attempt);
    const alone = reservation({ abandoned: () => true });
    t.strictSame(await store.reserve(alone), { kind: 'abandoned' });
    t.strictSame(await store.read([alone]), [null]);
  });

  t.test('a crowd that has gone leaves quickly', async (t) => {
    const id = someId();
    const crowd = Array.from({ length: 5_000 }, () => reservation({ ...id, abandoned: () => true }));
    const results = await Promise.all(crowd.map((one) => store.reserve(one)));
    t.ok(results.every((result) => result.kind === 'abandoned'));
  });

  for (const state of states) {
    t.test(`a key whose record is ${state} is never reserved`, async (t) => {
      const wanted = await reserved(store, { hadCredentials: true });
      await bring(harness, wanted, state);
      const result = await other.reserve(reservation({ scope: wanted.scope, key: wanted.key }));
      t.match(result, { kind: 'exists', record: { state, attempt: wanted.attempt, hadCredentials: true } });
      if (result.kind === 'exists') t.strictSame(result.record.fingerprint, wanted.fingerprint);
    });
  }

  t.test('an expired record is shown as expired, not given away', async (t) => {
    const wanted = await reserved(store);
    await bring(harness, wanted, 'completed');
    await harness.moveTimes(wanted, { retainUntilMs: -1_000 });
    const result = await store.reserve(reservation({ scope: wanted.scope, key: wanted.key }));
    t.match(result, { kind: 'exists', record: { state: 'completed', expired: true } });
  });

  t.test(
    'the same attempt again, while it holds the key, is reserved again with the same epoch',
    async (t) => {
      const wanted = reservation();
      const first = await store.reserve(wanted);
      t.equal(first.kind, 'reserved');
      t.strictSame(await other.reserve(wanted), first);
      await store.markUnknownIfHeld({ ...heldBy(wanted), status: null, error: 'test' });
      t.match(await other.reserve(wanted), { kind: 'exists', record: { state: 'unknown' } });
    },
  );

  t.test('the epoch grows with every attempt of a key, also after its record was reaped', async (t) => {
    const id = someId();
    const epochs: bigint[] = [];
    const note = (result: ReserveResult): void => {
      if (result.kind !== 'reserved') throw new Error(result.kind);
      epochs.push(BigInt(result.epoch));
    };
    for (let round = 0; round < 3; round += 1) {
      const wanted = reservation(id);
      note(await (round % 2 ? store : other).reserve(wanted));
      await release(harness, wanted);
      const again = reservation(id);
      note(await other.takeOverIfUnchanged(await recordAt(store, id), again));
      await store.completeIfHeld({ ...heldBy(again), answer: answer(), retentionMs });
      await harness.moveTimes(id, { retainUntilMs: -1_000 });
      t.ok((await store.reap(10)) >= 1);
      t.strictSame(await store.read([id]), [null]);
    }
    for (let at = 1; at < epochs.length; at += 1) {
      t.ok((epochs[at] as bigint) > (epochs[at - 1] as bigint), `${epochs[at]} > ${epochs[at - 1]}`);
    }
  });

  t.test('a row that the store will not take does not cost its neighbours theirs', async (t) => {
    const bad = reservation({ key: 'k'.repeat(300) });
    const good = Array.from({ length: 5 }, () => reservation());
    const results = await Promise.all(
      [good[0], bad, ...good.slice(1)].map((one) => store.reserve(one as Reservation)),
    );
    t.match(results[1], { kind: 'unavailable', mayExist: false });
    t.strictSame(
      results.filter((_, index) => index !== 1).map((result) => result.kind),
      good.map(() => 'reserved'),
    );
  });

  t.test('reads in the order asked for, with null where there is none', async (t) => {
    const one = await reserved(store);
    const two = await reserved(store);
    const found = await other.read([two, someId(), one, two]);
    t.strictSame(
      found.map((record) => record?.attempt ?? null),
      [two.attempt, null, one.attempt, two.attempt],
    );
    t.strictSame(await store.read([]), []);
  });

  t.test('what it says about the record is what was asked for', async (t) => {
    const tenant = `tenant ${randomUUID()} ü`;
    const wanted = await reserved(store, {
      tenant,
      fingerprint: someFingerprint(),
      path: `/${'p'.repeat(9_000)}`,
    });
    t.match(await recordAt(other, wanted), {
      attempt: wanted.attempt,
      state: 'in_progress',
      hadCredentials: false,
      expired: false,
      retainUntilMs: null,
      answer: null,
    });
  });
}

/** By the interface where it leads there. */
export async function bring(harness: Harness, wanted: Reservation, state: State): Promise<void> {
  const [store] = harness.stores;
  const held = heldBy(wanted);
  switch (state) {
    case 'in_progress':
      return;
    case 'completed':
      await store.completeIfHeld({ ...held, answer: answer(), retentionMs });
      return;
    case 'failed_retryable':
      await release(harness, wanted);
      return;
    case 'unknown':
      await store.markUnknownIfHeld({ ...held, status: 504, error: 'test' });
      return;
    case 'dead_letter':
      await harness.forceState(wanted, 'dead_letter');
  }
}

export async function release(harness: Harness, wanted: Reservation): Promise<void> {
  await harness.stores[0].releaseIfHeld({ ...heldBy(wanted), status: null, error: 'test', retentionMs });
}
