import t from 'tap';
import type { StoredRecord } from '../../src/core/record.ts';
import { Attempts } from '../../src/proxy/attempts.ts';
import type { ProxyDeps } from '../../src/proxy/deps.ts';
import type { Exchange } from '../../src/proxy/exchange.ts';
import { ReplayCache } from '../../src/proxy/replay-cache.ts';
import { type Claim, claim } from '../../src/proxy/reserve.ts';
import { Waiters } from '../../src/proxy/waiters.ts';
import { Lease } from '../../src/store/lease.ts';
import { now } from '../../src/store/moment.ts';
import type { ReserveResult } from '../../src/store/store.ts';
import { postgresHarness } from '../store/postgres-harness.ts';
import {
  answer,
  heldBy,
  reservation,
  reserved,
  retentionMs,
  someFingerprint,
  someId,
} from '../store/samples.ts';

const someExchange = () =>
  ({
    policy: { upstream: { timeoutMs: 1_000 }, dispatchMark: false },
    method: 'POST',
    path: '/a',
    requestId: 'r',
    clientGone: false,
  }) as unknown as Exchange;

t.test(
  'with no room for one more waiter an existing key is answered all the same, and a new one runs',
  async (t) => {
    const { stores } = await postgresHarness(t);
    const [store] = stores;
    const lease = new Lease(store, 60_000);
    await lease.renew();
    const waiters = new Waiters(store);
    for (let at = 0; waiters.enter({ scope: Buffer.alloc(32), key: String(at % 10) }); at += 1);
    const deps = {
      store,
      lease,
      waiters,
      attempts: new Attempts(),
      replays: new ReplayCache(0),
    } as unknown as ProxyDeps;
    const exchange = someExchange();
    const wanted = (): Claim => ({
      ...someId(),
      fingerprint: someFingerprint(),
      hasCredentials: false,
      tenant: null,
    });

    const done = wanted();
    await store.completeIfHeld({ ...heldBy(await reserved(store, done)), answer: answer(), retentionMs });
    t.match(await claim(deps, exchange, done), { kind: 'replay', answer: { status: 201 } });

    const running = wanted();
    const { attempt } = await reserved(store, running);
    t.match(await claim(deps, exchange, running), { kind: 'in_progress', attempt });

    t.match(await claim(deps, exchange, wanted()), { kind: 'own', takenOver: false });
  },
);

t.test('given up unsent: remembered if the store may hold a record of it, and only then', async (t) => {
  const { stores } = await postgresHarness(t);
  const [store] = stores;
  const lease = new Lease(store, 60_000);
  await lease.renew();
  const attempts = new Attempts();
  const cause = new Error('no answer');
  const settled = await reserved(store);
  await store.releaseIfHeld({ ...heldBy(settled), status: null, error: 'test', retentionMs });
  const [released] = await store.read([settled]);
  const look = { asked: now(), retainForMs: retentionMs };
  const reservable = { kind: 'exists', record: released as StoredRecord, look } as const;
  const unconfirmed = { kind: 'unavailable', cause, mayExist: true } as const;
  const refused = { kind: 'unavailable', cause, mayExist: false } as const;
  const gone = { kind: 'abandoned' } as const;
  const cases: readonly [what: string, results: readonly ReserveResult[], count: number][] = [
    ['refused before it was sent', [refused], 0],
    ['its client had gone', [gone], 0],
    ['sent, and not confirmed', [unconfirmed], 1],
    ['a take-over that was refused', [reservable, refused], 0],
    ['a take-over that was not confirmed', [reservable, unconfirmed], 1],
  ];
  const { fingerprint } = reservation();
  const wanted: Claim = {
    ...settled,
    fingerprint: released?.fingerprint ?? fingerprint,
    hasCredentials: true,
  };
  for (const [what, results, count] of cases) {
    const left = [...results];
    const next = async () => left.shift();
    const deps = {
      store: { reserve: next, takeOverIfUnchanged: next },
      lease,
      attempts,
      replays: new ReplayCache(0),
    } as unknown as ProxyDeps;
    t.match((await claim(deps, someExchange(), wanted)).kind, /^(refuse|gone)$/, what);
    t.equal(attempts.unsent.size, count, what);
    t.equal(attempts.size, 0);
    const { scope, key } = wanted;
    for (const one of attempts.unsent.all()) {
      t.match(one, { scope, key, instance: lease.current() });
      attempts.unsent.drop(one.attempt);
    }
  }
});
