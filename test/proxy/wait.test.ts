import { randomUUID } from 'node:crypto';
import t, { type Test } from 'tap';
import { requestDone } from '../../src/events.ts';
import { Waiters } from '../../src/proxy/waiters.ts';
import type { Store } from '../../src/store/store.ts';
import { problemOf, send } from '../helpers/client.ts';
import { query, testDatabase } from '../helpers/postgres.ts';
import { type Sidecar, sidecar } from '../helpers/sidecar.ts';
import { until } from '../helpers/until.ts';
import { type Steering, type TestUpstream, testUpstream } from '../helpers/upstream.ts';
import { digest, someFingerprint } from '../store/samples.ts';

/** Two replicas on one store: `near` runs the first request, a duplicate waits on `near` or on `far`. */
interface Replicas {
  readonly upstream: TestUpstream;
  readonly near: Sidecar;
  readonly far: Sidecar;
}

async function replicas(t: Test, config = ''): Promise<Replicas> {
  const upstream = await testUpstream(t);
  const { url: databaseUrl } = await testDatabase(t);
  const options = { upstream: upstream.url, databaseUrl, config };
  return { upstream, near: await sidecar(t, options), far: await sidecar(t, options) };
}

/** The first request is upstream, and duplicates wait; what each got, once the upstream has done as it is told. */
async function withDuplicates({ upstream, near, far }: Replicas, key: string, steer: Steering) {
  const before = upstream.executions.length;
  const first = send(`${near.dataUrl}/a`, key, { steer: { ...steer, hold: true } });
  await upstream.received(before + 1);
  const here = send(`${near.dataUrl}/a`, key);
  const there = send(`${far.dataUrl}/a`, key);
  await Promise.all([passed(near, key), passed(far, key)]);
  return { first, here, there };
}

/** What was sent to this sidecar before has got as far as waiting: others have since gone the same way and back. */
async function passed({ dataUrl }: Sidecar, key: string): Promise<void> {
  for (const body of ['1', '2', '3']) await send(`${dataUrl}/a`, key, { body });
}

t.test('a duplicate gets the answer of the attempt it waited for, whatever that was', async (t) => {
  const all = await replicas(t);
  const { upstream } = all;
  const longAgo = 'Wed, 01 Jan 2020 00:00:00 GMT';
  const secret = { 'Set-Cookie': 'session=1', 'X-Kept': 'yes', Date: longAgo };
  const rows: readonly [Steering, here: [number, string], there: [number, string]][] = [
    [{ status: 201, headers: secret }, [201, 'replayed'], [201, 'replayed']],
    // Released. Only the process that ran it knows the answer; elsewhere a client may retry, and then it runs.
    [{ status: 429, headers: secret }, [429, 'released'], [409, 'in_progress']],
    [{ status: 503, headers: secret }, [503, 'unknown'], [409, 'unknown']],
  ];
  for (const [steer, here, there] of rows) {
    const key = randomUUID();
    const waiting = await withDuplicates(all, key, steer);
    upstream.letGo();
    const first = await waiting.first;
    t.equal(first.status, steer.status);
    const answers = [await waiting.here, await waiting.there];
    t.same(
      answers.map(({ status, headers }) => [status, headers['idempotency-status']]),
      [here, there],
    );
    t.ok(first.headers['set-cookie'], 'the first client gets its cookie');
    for (const answer of answers) t.equal(answer.headers['set-cookie'], undefined, 'nobody else does');
    t.equal(answers[0]?.headers['x-kept'], 'yes');
    t.equal(first.headers['date'], longAgo);
    for (const answer of answers) t.not(answer.headers['date'], longAgo, 'that was the time of another');
    t.same(answers[0]?.body, first.body);
    t.equal(upstream.countOf(key), 1, 'and none of them took the key');
  }
});

t.test('a waiter does not run the key when it is released under its eyes', async (t) => {
  const all = await replicas(t);
  const key = randomUUID();
  const { here, there } = await withDuplicates(all, key, { status: 500 });
  const others = Array.from({ length: 20 }, (_, i) => send(`${(i % 2 ? all.far : all.near).dataUrl}/a`, key));
  await Promise.all([passed(all.near, key), passed(all.far, key)]);
  all.upstream.letGo();
  const answers = await Promise.all([here, there, ...others]);
  t.same(new Set(answers.map(({ status }) => status)), new Set([500, 409]));
  t.equal(all.upstream.countOf(key), 1);
  t.equal((await send(`${all.far.dataUrl}/a`, key)).status, 201, 'a retry may');
});

t.test('another caller, or another request, is told so at once and does not wait', async (t) => {
  const all = await replicas(t);
  const key = randomUUID();
  const url = `${all.near.dataUrl}/a`;
  const first = send(url, key, { steer: { hold: true }, headers: { Authorization: 'x' } });
  await all.upstream.received(1);
  for (const { dataUrl } of [all.near, all.far]) {
    t.equal(problemOf(await send(`${dataUrl}/a`, key, { body: '{}' })).code, 'key_reused');
    t.equal(problemOf(await send(`${dataUrl}/a`, key)).code, 'caller_differs');
  }
  all.upstream.letGo();
  t.equal((await first).status, 201);
});

t.test('when the wait is over: 409, and the first is not disturbed', async (t) => {
  const all = await replicas(t, 'defaults: { inFlight: { wait: 100ms } }');
  const { first, here, there } = await withDuplicates(all, 'k', {});
  for (const answer of await Promise.all([here, there])) t.equal(problemOf(answer).code, 'in_progress');
  all.upstream.letGo();
  t.equal((await first).status, 201);
});

t.test('the owner of the key dies: those who wait elsewhere learn that it is unknown', async (t) => {
  const all = await replicas(t, 'loops: { sweep: 100ms }\nlease: 1s');
  const waiting = await withDuplicates(all, 'k', {});
  await query(
    all.near.databaseUrl,
    `UPDATE oncegate.record SET deadline = clock_timestamp() - interval '1 s'`,
  );
  t.equal(problemOf(await waiting.there).code, 'outcome_unknown');
  all.upstream.letGo();
  const [first, here] = await Promise.all([waiting.first, waiting.here]);
  t.same([first.status, here.status], [201, 201], 'it was not dead: its late answer counts');
  t.equal((await send(`${all.far.dataUrl}/a`, 'k')).headers['idempotency-status'], 'replayed');
  t.equal(all.upstream.countOf('k'), 1);
});

t.test('a client that leaves does not wait on', async (t) => {
  const all = await replicas(t, 'defaults: { inFlight: { wait: 10m } }');
  const first = send(`${all.near.dataUrl}/a`, 'k', { steer: { hold: true } });
  await all.upstream.received(1);
  const verdicts: string[] = [];
  t.teardown(requestDone.subscribe(({ verdict }) => verdicts.push(verdict)));
  for (const one of [all.near, all.far]) {
    const { dataUrl } = one;
    const leaving = new AbortController();
    const left = send(`${dataUrl}/a`, 'k', { signal: leaving.signal });
    await passed(one, 'k');
    leaving.abort();
    await t.rejects(left);
  }
  await until('both are done with', () => verdicts.filter((one) => one === 'in_progress').length === 2);
  all.upstream.letGo();
  t.equal((await first).status, 201);
});

const id = (key: string) => ({ scope: digest('scope'), key });
const never = new Promise<void>(() => {});

t.test('waiters are bounded', async (t) => {
  const waiters = new Waiters({} as Store);
  let entered = 0;
  while (waiters.enter(id('one'))) entered += 1;
  t.equal(entered, 1_000, 'per key');
  for (let key = 0; waiters.enter(id(String(key % 1_000))); key += 1) entered += 1;
  t.equal(entered, 10_000, 'in all');
  t.equal(waiters.enter(id('another')), false);
  for (let i = 0; i < 1_000; i += 1) waiters.leave(id('one'));
  t.equal(waiters.enter(id('one')), true, 'who leaves makes room');
});

t.test(
  'one look serves many keys, a store that is away is asked again, and nobody is asked for nothing',
  async (t) => {
    const keys = 600;
    let looks = 0;
    let isAway = true;
    const fingerprint = someFingerprint();
    const record = {
      epoch: '1',
      fingerprint,
      hadCredentials: false,
      expired: false,
      retainUntilMs: null,
      blocked: false,
      status: null,
      answer: null,
    };
    const store: Partial<Store> = {
      read: async (ids) => {
        looks += 1;
        if (isAway) {
          isAway = false;
          throw new Error('away');
        }
        t.ok(ids.length <= 256, `${ids.length} in one look`);
        return ids.map(({ key }) => ({
          ...record,
          attempt: key,
          state: key === 'x' ? ('in_progress' as const) : ('unknown' as const),
        }));
      },
    };
    const waiters = new Waiters(store as Store);
    const waits = Array.from({ length: keys }, (_, i) =>
      waiters.settled(id(`key-${i}`), `key-${i}`, { waitMs: 60_000, left: never }),
    );
    const found = await Promise.all(waits);
    t.equal(found.filter((one) => one?.state === 'unknown').length, keys);
    t.ok(looks <= 5, `${looks} looks`);
    const left = waiters.settled(id('x'), 'x', { waitMs: 60_000, left: Promise.resolve() });
    t.equal(await left, null);
    // Only a look under way could still ask: the timer of the next one would keep this process from ending.
  },
);

t.test('one whose wait is over takes nobody with it when its client leaves', async (t) => {
  const fingerprint = someFingerprint();
  let state: 'in_progress' | 'unknown' = 'in_progress';
  const record = {
    epoch: '1',
    fingerprint,
    hadCredentials: false,
    expired: false,
    retainUntilMs: null,
    blocked: false,
    status: null,
    answer: null,
  };
  const store: Partial<Store> = {
    read: async (ids) => ids.map(({ key }) => ({ ...record, attempt: key, state })),
  };
  const waiters = new Waiters(store as Store);
  let leave: () => void = () => {};
  const left = new Promise<void>((resolve) => (leave = resolve));
  t.equal(await waiters.settled(id('x'), 'x', { waitMs: 1, left }), null);
  const next = waiters.settled(id('x'), 'x', { waitMs: 5_000, left: never });
  leave();
  await left;
  state = 'unknown';
  t.equal((await next)?.state, 'unknown');
});
