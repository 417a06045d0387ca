import t from 'tap';
import { Attempts } from '../../src/proxy/attempts.ts';
import type { ProxyDeps } from '../../src/proxy/deps.ts';
import type { Exchange } from '../../src/proxy/exchange.ts';
import { ReplayCache } from '../../src/proxy/replay-cache.ts';
import { type Claim, claim } from '../../src/proxy/reserve.ts';
import { Waiters } from '../../src/proxy/waiters.ts';
import { Lease } from '../../src/store/lease.ts';
import { postgresHarness } from '../store/postgres-harness.ts';
import { answer, heldBy, reserved, retentionMs, someFingerprint, someId } from '../store/samples.ts';

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
    const exchange = {
      policy: { upstream: { timeoutMs: 1_000 }, dispatchMark: false },
      method: 'POST',
      path: '/a',
      requestId: 'r',
      clientGone: false,
    } as unknown as Exchange;
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
