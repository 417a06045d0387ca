import { randomUUID } from 'node:crypto';
import t, { type Test } from 'tap';
import { createMemos } from '../../src/core/memos.ts';
import { encodeStored } from '../../src/core/response.ts';
import { type AnswerRefused, answerRefused } from '../../src/events.ts';
import { Attempts } from '../../src/proxy/attempts.ts';
import { complete, giveUp } from '../../src/proxy/complete.ts';
import type { ProxyDeps } from '../../src/proxy/deps.ts';
import type { Exchange } from '../../src/proxy/exchange.ts';
import type { Forwarded } from '../../src/proxy/forward.ts';
import type { Claim } from '../../src/proxy/reserve.ts';
import type { Completion, LateAnswer, Reservation } from '../../src/store/store.ts';
import { UpstreamFault } from '../../src/upstream/failure.ts';
import { query } from '../helpers/postgres.ts';
import { postgresHarness } from '../store/postgres-harness.ts';
import {
  answer,
  recordAt,
  reservation,
  reserved,
  retentionMs,
  someFingerprint,
  someId,
} from '../store/samples.ts';

const head = {
  status: 201,
  headers: ['X-A', '1'],
  hasRetryAfter: false,
  upstreamSays: null,
  closeFramed: false,
};

const answered: Forwarded = {
  captured: {
    kind: 'whole',
    ending: { kind: 'answered', status: 201, hasRetryAfter: false, upstreamSays: null, closeFramed: false },
    head,
    body: Buffer.from('ours'),
  },
  capture: { discard: () => {} } as unknown as Forwarded['capture'],
};

/** A real store in which `attempt` holds the key. */
async function scene(t: Test) {
  const harness = await postgresHarness(t);
  const [store, other] = harness.stores;
  const attempts = new Attempts();
  const attempt = attempts.open(randomUUID(), 60_000);
  const wanted: Claim = { ...someId(), fingerprint: someFingerprint(), hasCredentials: false, tenant: null };
  await reserved(store, { ...wanted, attempt: attempt.id, instance: attempt.instance });
  const exchange = {
    policy: { outcomes: { preset: 'standard', overrides: {} }, retentionMs, replayStatus: 'original' },
    requestId: 'r',
    error: null,
  } as unknown as Exchange;
  const deps = { store, attempts, memos: createMemos() } as unknown as ProxyDeps;
  return { harness, store, other, deps, attempts, attempt, exchange, wanted };
}

type Scene = Awaited<ReturnType<typeof scene>>;

t.test('settled: the client gets the answer, and the attempt is over', async (t) => {
  const { deps, attempts, attempt, exchange, wanted, store } = await scene(t);
  const { first, others } = await complete(deps, exchange, { wanted, attempt, forwarded: answered });
  t.match(first, { kind: 'answer', status: 201, idempotency: 'executed', retainUntilMs: Number });
  t.match(others(), { kind: 'answer', status: 201, idempotency: 'replayed', headers: ['X-A', '1'] });
  t.same([attempts.size, attempts.unsent.size], [0, 0]);
  t.equal((await recordAt(store, wanted)).state, 'completed');
});

const notStarted = (error: Error): Forwarded => ({
  ...answered,
  captured: { kind: 'whole', ending: { kind: 'not_started', error }, head: null, body: Buffer.alloc(0) },
});

t.test('never sent, and its release was not confirmed: the sweeper may release it later', async (t) => {
  const { deps, attempts, attempt, exchange, wanted, store } = await scene(t);
  await store.close(0);
  await complete(deps, exchange, { wanted, attempt, forwarded: notStarted(new Error('ECONNREFUSED')) });
  const { scope, key } = wanted;
  t.match(attempts.unsent.all(), [{ scope, key, attempt: attempt.id, instance: attempt.instance }]);
  t.equal(attempts.size, 0);
});

t.test('never sent: released, and the client is told whose fault it was', async (t) => {
  const cases = [
    [new UpstreamFault('start_refused', 'the lease was over when its turn came'), 'store_unavailable'],
    [new UpstreamFault('no_room', 'no memory is left for its answer'), 'overloaded'],
    [new Error('ECONNREFUSED'), 'upstream_unreachable'],
    [new UpstreamFault('timed_out', 'no connection became free'), 'upstream_unreachable'],
  ] as const;
  for (const [error, code] of cases) {
    const { deps, attempts, attempt, exchange, wanted, store } = await scene(t);
    const forwarded = notStarted(error);
    const { first } = await complete(deps, exchange, { wanted, attempt, forwarded });
    t.match(first, { kind: 'problem', code, idempotency: 'released' });
    t.equal((await recordAt(store, wanted)).state, 'failed_retryable');
    t.same([attempts.size, attempts.unsent.size], [0, 0], 'the store has confirmed it');
  }
});

t.test('a settlement that the store never took: it is no proof that nothing ran', async (t) => {
  const { deps, attempts, attempt, exchange, wanted, store } = await scene(t);
  await store.close(0);
  const { first } = await complete(deps, exchange, { wanted, attempt, forwarded: answered });
  t.match(first, { kind: 'problem', code: 'answer_unsaved' });
  t.same([attempts.size, attempts.unsent.size], [0, 0]);
});

t.test(
  'a fault of ours: unknown, and never taken for unsent where not even that could be written',
  async (t) => {
    for (const closed of [false, true]) {
      const { deps, attempts, attempt, exchange, wanted, store, other } = await scene(t);
      if (closed) await store.close(0);
      const waiting = attempt.concluded().reply;
      t.match(await giveUp(deps, exchange, wanted, attempt), { kind: 'problem', code: 'upstream_failed' });
      t.match(await waiting, { code: 'upstream_failed' }, 'those who wait are told');
      t.same([attempts.size, attempts.unsent.size], [0, 0]);
      t.equal((await recordAt(other, wanted)).state, closed ? 'in_progress' : 'unknown');
    }
  },
);

/** The key is released and taken over by another attempt, as an operator and a retry on another replica would do. */
async function taken(
  { other, attempt, wanted }: Scene,
  changes: Partial<Reservation> = {},
): Promise<Reservation> {
  const held = { scope: wanted.scope, key: wanted.key, attempt: attempt.id };
  await other.releaseIfHeld({ ...held, status: null, error: 'released', retentionMs });
  const next = reservation({ ...wanted, ...changes });
  await other.takeOverIfUnchanged(await recordAt(other, wanted), next);
  return next;
}

const kept = answer({ status: 200, headers: encodeStored(createMemos(), []), body: Buffer.from('kept') });

const refusals: Readonly<Record<string, { meanwhile: (s: Scene) => Promise<unknown>; reply: object }>> = {
  'another attempt completed it': {
    meanwhile: async (s) => s.other.completeIfHeld({ ...(await taken(s)), answer: kept, retentionMs }),
    reply: { kind: 'answer', status: 200, body: kept.body, idempotency: 'replayed' },
  },
  'another attempt completed it, its answer too large to keep': {
    meanwhile: async (s) =>
      s.other.completeIfHeld({ ...(await taken(s)), answer: { ...kept, body: null }, retentionMs }),
    reply: { code: 'response_not_retained' },
  },
  'another attempt runs': { meanwhile: (s) => taken(s), reply: { code: 'in_progress' } },
  'another attempt was released': {
    meanwhile: async (s) =>
      s.other.releaseIfHeld({ ...(await taken(s)), status: null, error: 'released', retentionMs }),
    reply: { code: 'in_progress' },
  },
  'nobody knows what became of another attempt': {
    meanwhile: async (s) => s.other.markUnknownIfHeld({ ...(await taken(s)), status: null, error: 'cut' }),
    reply: { code: 'outcome_unknown' },
  },
  'another attempt runs another request': {
    meanwhile: (s) => taken(s, { fingerprint: someFingerprint() }),
    reply: { code: 'key_reused' },
  },
  'the record is gone': { meanwhile: (s) => s.harness.clear(), reply: { code: 'outcome_unknown' } },
};

t.test('refused, and no evidence could be kept: told all the same', async (t) => {
  const here = await scene(t);
  const { store, attempts, attempt, exchange, wanted } = here;
  await taken(here);
  const deaf = {
    completeIfHeld: (completion: Completion) => store.completeIfHeld(completion),
    keepLateAnswer: () => Promise.reject(new Error('the server is gone')),
  };
  const deps = { store: deaf, attempts, memos: createMemos() } as unknown as ProxyDeps;
  const { first } = await complete(deps, exchange, { wanted, attempt, forwarded: answered });
  t.match(first, { code: 'in_progress' });
  t.same([attempts.size, attempts.unsent.size], [0, 0]);
});

for (const [what, { meanwhile, reply }] of Object.entries(refusals)) {
  t.test(`refused, ${what}: what is kept counts, not what we got`, async (t) => {
    const here = await scene(t);
    const { deps, attempts, attempt, exchange, wanted } = here;
    await meanwhile(here);
    const refused: AnswerRefused[] = [];
    t.teardown(answerRefused.subscribe((one) => refused.push(one)));
    const { first, others } = await complete(deps, exchange, { wanted, attempt, forwarded: answered });
    t.match(first, reply);
    t.equal(others(), first);
    t.notMatch(JSON.stringify(first), Buffer.from('ours').toString('base64'));
    t.match(refused, [{ attempt: attempt.id, status: 201, outcome: 'store', kept: true }], 'it is told');
    const evidence = `SELECT attempt, outcome, status, request_id, convert_from(body, 'UTF8') AS body
      FROM oncegate.late_answer WHERE attempt = '${attempt.id}'`;
    t.match(
      await query(here.harness.url, evidence),
      [{ attempt: attempt.id, outcome: 'store', status: 201, request_id: exchange.requestId, body: 'ours' }],
      'and kept as evidence',
    );
    t.equal(exchange.outcome, 'refused');
    // What refused it was read, and may be lost in a failover: its record must never look unsent.
    t.same([attempts.size, attempts.unsent.size], [0, 0]);
  });
}

t.test('refused, and it was never sent: no evidence of anything', async (t) => {
  const here = await scene(t);
  const { deps, attempts, attempt, exchange, wanted, harness } = here;
  await taken(here);
  await complete(deps, exchange, { wanted, attempt, forwarded: notStarted(new Error('x')) });
  t.equal(attempts.unsent.size, 1, 'what refused it may be lost in a failover: then it may be released');
  t.same(await query(harness.url, 'SELECT FROM oncegate.late_answer'), []);
});

t.test('evidence goes after a month, and one attempt gives one', async (t) => {
  const { store, wanted, attempt, harness } = await scene(t);
  const { scope, key } = wanted;
  const late = {
    scope,
    key,
    attempt: attempt.id,
    requestId: 'r',
    outcome: 'unknown',
    status: null,
    answer: null,
  } as const;
  await store.keepLateAnswer(late);
  await store.keepLateAnswer({ ...late, status: 200 });
  t.match(await query(harness.url, 'SELECT status FROM oncegate.late_answer'), [{ status: null }]);
  const age = (interval: string) =>
    query(harness.url, `UPDATE oncegate.late_answer SET received_at = now() - interval '${interval}'`);
  await age('29 days');
  await store.reap(10);
  t.equal((await query(harness.url, 'SELECT FROM oncegate.late_answer')).length, 1);
  await age('31 days');
  await store.reap(10);
  t.equal((await query(harness.url, 'SELECT FROM oncegate.late_answer')).length, 0);
});

t.test('refused long after the client was told to ask again: it is evidence all the same', async (t) => {
  const here = await scene(t);
  const { deps, attempts, attempt, exchange, wanted, harness, store } = here;
  let reconnect = () => {};
  const cutOff = new Promise<void>((resolve) => (reconnect = resolve));
  const late = Object.assign(Object.create(store) as typeof store, {
    completeIfHeld: (completion: Completion) => cutOff.then(() => store.completeIfHeld(completion)),
    keepLateAnswer: (evidence: LateAnswer) => store.keepLateAnswer(evidence),
  });
  // Real time: ten seconds is what a client waits for its answer to be saved.
  const { first } = await complete({ ...deps, store: late }, exchange, {
    wanted,
    attempt,
    forwarded: answered,
  });
  t.match(first, { kind: 'problem', code: 'answer_unsaved' });
  t.equal(attempts.size, 1, 'it is still to be settled');
  await taken(here);
  const told = new Promise<AnswerRefused>((resolve) => t.teardown(answerRefused.subscribe(resolve)));
  reconnect();
  t.match(await told, { attempt: attempt.id, status: 201, kept: true });
  t.equal((await query(harness.url, 'SELECT FROM oncegate.late_answer')).length, 1);
});
