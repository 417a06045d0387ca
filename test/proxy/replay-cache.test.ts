import t, { type Test } from 'tap';
import type { StoredRecord } from '../../src/core/record.ts';
import { ReplayCache, replayLifeMs } from '../../src/proxy/replay-cache.ts';
import { now } from '../../src/store/moment.ts';
import { purgeBlockSeconds } from '../../src/store/postgres/sql/operator.ts';
import { problemOf, send } from '../helpers/client.ts';
import { query, testDatabase } from '../helpers/postgres.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { testUpstream } from '../helpers/upstream.ts';
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

const dayMs = 86_400_000;

function completed(changes: Partial<StoredRecord> = {}): StoredRecord {
  return {
    attempt: 'a',
    epoch: '1',
    state: 'completed',
    fingerprint: someFingerprint(),
    hadCredentials: false,
    expired: false,
    retainUntilMs: dayMs,
    blocked: false,
    status: null,
    answer: answer(),
    ...changes,
  };
}

function cacheAt(limitBytes: number) {
  const clock = { monotonicMs: 1_000, wallMs: 1_000_000 };
  return { clock, cache: new ReplayCache(limitBytes, () => ({ ...clock })) };
}

t.test('an entry is as old as the moment before the store was asked', async (t) => {
  const { clock, cache } = cacheAt(1_000_000);
  const [id, record] = [someId(), completed()];
  const asked = { monotonicMs: clock.monotonicMs - 5_000, wallMs: clock.wallMs - 5_000 };
  cache.keep(id, record, { asked, retainForMs: dayMs });
  clock.monotonicMs += replayLifeMs - 5_001;
  t.strictSame(cache.find(id), record);
  clock.monotonicMs += 1;
  t.equal(cache.find(id), null);
  t.equal(cache.bytes, 0, 'and nothing of it is left');
});

t.test('never past its retention', async (t) => {
  const { clock, cache } = cacheAt(1_000_000);
  const id = someId();
  cache.keep(id, completed(), { asked: { ...clock }, retainForMs: 300 });
  clock.monotonicMs += 299;
  t.ok(cache.find(id));
  clock.monotonicMs += 1;
  t.equal(cache.find(id), null);
});

t.test('time goes on while the machine sleeps', async (t) => {
  const { clock, cache } = cacheAt(1_000_000);
  const id = someId();
  cache.keep(id, completed(), { asked: { ...clock }, retainForMs: 10_000 });
  clock.wallMs += 10_000;
  t.equal(cache.find(id), null);
});

t.test('a purge blocks its key for twice as long as an answer stays', async (t) => {
  t.ok(purgeBlockSeconds * 1000 >= 2 * replayLifeMs);
});

t.test('who shares a look at the store shares its age', async (t) => {
  const { stores } = await postgresHarness(t);
  const [store] = stores;
  const wanted = await reserved(store);
  await store.completeIfHeld({ ...heldBy(wanted), answer: answer(), retentionMs });
  const before = now();
  const again = () => store.reserve(reservation({ scope: wanted.scope, key: wanted.key }));
  const [leader, follower] = await Promise.all([again(), again()]);
  if (leader.kind !== 'exists' || follower.kind !== 'exists') throw new Error(leader.kind);
  t.equal(follower.look, leader.look);
  t.ok(leader.look.asked.monotonicMs >= before.monotonicMs);
});

t.test('only what is replayed word for word', async (t) => {
  const { clock, cache } = cacheAt(1_000_000);
  const id = someId();
  for (const changes of [
    { state: 'failed_retryable', answer: null },
    { state: 'in_progress', answer: null },
    { state: 'unknown', answer: null },
    { expired: true },
    { answer: answer({ body: null }) },
  ] as const) {
    cache.keep(id, completed(changes), { asked: { ...clock }, retainForMs: dayMs });
    t.equal(cache.find(id), null, JSON.stringify(changes));
  }
  t.equal(cache.bytes, 0);
});

t.test('bounded by bytes: the oldest go first, and one that is too large never comes', async (t) => {
  const { clock, cache } = cacheAt(100_000);
  const large = completed({ answer: answer({ body: Buffer.alloc(20_000) }) });
  const ids = Array.from({ length: 50 }, someId);
  for (const id of ids) {
    cache.keep(id, large, { asked: { ...clock }, retainForMs: dayMs });
    t.ok(cache.bytes <= 100_000);
  }
  t.equal(cache.find(ids[0] as (typeof ids)[0]), null);
  t.strictSame(cache.find(ids[49] as (typeof ids)[0]), large);
  const before = cache.bytes;
  cache.keep(someId(), completed({ answer: answer({ body: Buffer.alloc(100_000) }) }), {
    asked: { ...clock },
    retainForMs: dayMs,
  });
  t.equal(cache.bytes, before);
  for (let i = 0; i < 10; i += 1)
    cache.keep(ids[49] as (typeof ids)[0], large, { asked: { ...clock }, retainForMs: dayMs });
  t.equal(cache.bytes, before, 'the same one again takes no more room');
});

t.test('an answer cut from a larger block does not keep that', async (t) => {
  const { clock, cache } = cacheAt(1_000_000);
  const id = someId();
  const body = Buffer.alloc(65_536).subarray(100, 110);
  cache.keep(id, completed({ answer: answer({ body }) }), { asked: { ...clock }, retainForMs: dayMs });
  const kept = cache.find(id)?.answer?.body;
  t.ok((kept?.buffer.byteLength ?? 0) < 1_000);
});

t.test('what is long over goes when something new comes', async (t) => {
  const { clock, cache } = cacheAt(1_000_000);
  for (let i = 0; i < 10; i += 1)
    cache.keep(someId(), completed(), { asked: { ...clock }, retainForMs: dayMs });
  const full = cache.bytes;
  clock.monotonicMs += replayLifeMs;
  cache.keep(someId(), completed(), { asked: { ...clock }, retainForMs: dayMs });
  t.equal(cache.bytes, full / 10);
});

/** The record is taken out of the store behind Oncegate's back: what is answered now comes from memory. */
async function inMemory(t: Test, options: { headers?: Record<string, string> } = {}) {
  const upstream = await testUpstream(t);
  const { url: databaseUrl } = await testDatabase(t);
  const running = await sidecar(t, { upstream: upstream.url, databaseUrl });
  const url = `${running.dataUrl}/charges`;
  const first = await send(url, 'k', { ...options, steer: { headers: { 'X-Kept': 'yes' } } });
  const second = await send(url, 'k', options);
  t.same([first.status, second.headers['idempotency-status']], [201, 'replayed']);
  await query(databaseUrl, 'DELETE FROM oncegate.record');
  return { upstream, url, second, databaseUrl };
}

t.test('the third time is answered from memory, as the second was from the store', async (t) => {
  const { upstream, url, second } = await inMemory(t);
  const third = await send(url, 'k');
  const { 'x-request-id': ours, date: _, ...headers } = second.headers;
  t.match(third, { status: second.status, headers, body: second.body });
  t.not(third.headers['x-request-id'], ours);
  t.equal(upstream.countOf('k'), 1);
});

t.test('from memory too: another request with the same key, and a caller without credentials', async (t) => {
  const headers = { Authorization: 'Bearer a' };
  const { upstream, url } = await inMemory(t, { headers });
  t.equal(problemOf(await send(url, 'k', { headers, body: '{"amount":2}' })).code, 'key_reused');
  t.equal(problemOf(await send(url, 'k')).code, 'caller_differs');
  t.equal((await send(url, 'k', { headers })).status, 201);
  t.equal(upstream.countOf('k'), 1);
});

t.test('memory is of one path: the same key elsewhere runs', async (t) => {
  const { upstream, url } = await inMemory(t);
  t.equal((await send(`${url}/other`, 'k')).headers['idempotency-status'], 'executed');
  t.equal(upstream.countOf('k'), 2);
});
