import t, { type Test } from 'tap';
import { hashOf } from '../../src/core/record.ts';
import type { ChangeResult } from '../../src/store/operator.ts';
import { by, completed, doubtful, given, operatorAt, viewOf } from './operator-harness.ts';
import { type PostgresHarness, postgresHarness } from './postgres-harness.ts';
import { answer, heldBy, recordAt, reservation, reserved, retentionMs } from './samples.ts';

let harness: PostgresHarness;
t.before(async () => {
  harness = await postgresHarness(t);
});

const kinds = (results: readonly ChangeResult[]) => results.map(({ kind }) => kind).sort();
const setUp = (t: Test) => ({ store: harness.stores[0], operator: operatorAt(t, harness.url) });

t.test('complete: the record has the given answer, and the audit says who, what and why', async (t) => {
  const { store, operator } = setUp(t);
  const wanted = await doubtful(store);
  const seen = await viewOf(operator, wanted);
  t.match(seen, {
    state: 'unknown',
    status: 502,
    lastError: 'the upstream hung up',
    attempt: wanted.attempt,
  });
  t.match(await operator.completeIfUnchanged(seen, by, given), {
    kind: 'done',
    record: { state: 'completed' },
  });
  const record = await recordAt(store, wanted);
  t.match(record, { state: 'completed', attempt: wanted.attempt, expired: false, answer: given.answer });
  t.strictSame(await operator.answerAt(wanted), given.answer);
  const { audit, lateAnswers } = await operator.history(wanted);
  t.match(audit, [{ ...by, action: 'complete', from: 'unknown', to: 'completed', epoch: seen.epoch }]);
  t.equal(audit.length, 1);
  t.strictSame(lateAnswers, []);
});

t.test('what may be done from which state; whatever is refused leaves no line in the audit', async (t) => {
  const { store, operator } = setUp(t);
  const cases = [
    ['in_progress', () => reserved(store), []],
    ['unknown', () => doubtful(store), ['complete', 'release']],
    ['completed', () => completed(store), ['purge']],
    [
      'failed_retryable',
      async () => {
        const wanted = await reserved(store);
        await store.releaseIfHeld({ ...heldBy(wanted), status: null, error: 'test', retentionMs });
        return wanted;
      },
      [],
    ],
    [
      'dead_letter',
      async () => {
        const wanted = await doubtful(store);
        await harness.forceState(wanted, 'dead_letter');
        return wanted;
      },
      ['complete', 'release'],
    ],
  ] as const;
  for (const [state, make, legal] of cases) {
    for (const action of ['complete', 'release', 'purge'] as const) {
      const wanted = await make();
      const seen = await viewOf(operator, wanted);
      t.equal(seen.state, state);
      const result = await {
        complete: () => operator.completeIfUnchanged(seen, by, given),
        release: () => operator.releaseIfUnchanged(seen, by, retentionMs),
        purge: () => operator.purgeIfUnchanged(seen, by),
      }[action]();
      const isLegal = (legal as readonly string[]).includes(action);
      t.match(
        result,
        isLegal ? { kind: 'done' } : { kind: 'refused', record: { state } },
        `${action} ${state}`,
      );
      const { audit } = await operator.history(wanted);
      t.equal(audit.length, isLegal ? 1 : 0, `${action} ${state}`);
    }
  }
});

t.test(
  'two at once: exactly one wins, one line in the audit, the other is told what is there now',
  async (t) => {
    const { store } = setUp(t);
    const [ann, bob] = [operatorAt(t, harness.url), operatorAt(t, harness.url)];
    for (let round = 0; round < 20; round += 1) {
      const wanted = await doubtful(store);
      const seen = await viewOf(ann, wanted);
      const results = await Promise.all([
        ann.completeIfUnchanged(seen, by, given),
        bob.releaseIfUnchanged(seen, { ...by, actor: 'bob@test' }, retentionMs),
      ]);
      t.strictSame(kinds(results), ['done', 'refused']);
      const { audit } = await ann.history(wanted);
      const winner = results[0].kind === 'done' ? by.actor : 'bob@test';
      t.match(audit, [{ actor: winner }]);
      t.equal(audit.length, 1);
      const { state } = await recordAt(store, wanted);
      t.equal(state, audit[0]?.to);
      t.match(
        results.find(({ kind }) => kind === 'refused'),
        { record: { state } },
      );
    }
  },
);

t.test('who decided on an earlier attempt changes nothing about a later one', async (t) => {
  const { store, operator } = setUp(t);
  const wanted = await doubtful(store);
  const seen = await viewOf(operator, wanted);
  await operator.releaseIfUnchanged(seen, by, retentionMs);
  const next = reservation({ scope: wanted.scope, key: wanted.key });
  const taken = await store.takeOverIfUnchanged(await recordAt(store, wanted), next);
  if (taken.kind !== 'reserved') throw new Error(taken.kind);
  t.ok(BigInt(taken.epoch) > BigInt(seen.epoch), 'a larger epoch');
  await store.markUnknownIfHeld({ ...heldBy(next), status: null, error: 'again' });
  const stale = await operator.completeIfUnchanged(seen, by, given);
  t.match(stale, {
    kind: 'refused',
    record: { state: 'unknown', attempt: next.attempt, epoch: taken.epoch },
  });
  t.equal((await operator.history(wanted)).audit.length, 1);
  // The old attempt's answer comes after all, and counts for nothing.
  const late = await store.completeIfHeld({ ...heldBy(wanted), answer: answer(), retentionMs });
  t.match(late, { kind: 'refused', record: { attempt: next.attempt, state: 'unknown' } });
});

t.test('the original attempt and a person: whoever comes first is what is kept', async (t) => {
  const { store, operator } = setUp(t);
  const complete = (wanted: Parameters<typeof heldBy>[0]) =>
    store.completeIfHeld({ ...heldBy(wanted), answer: answer(), retentionMs });

  const first = await doubtful(store);
  const seen = await viewOf(operator, first);
  t.equal((await complete(first)).kind, 'settled');
  t.match(await operator.completeIfUnchanged(seen, by, given), {
    kind: 'refused',
    record: { state: 'completed' },
  });
  t.strictSame((await recordAt(store, first)).answer, answer());

  const second = await doubtful(store);
  t.equal((await operator.completeIfUnchanged(await viewOf(operator, second), by, given)).kind, 'done');
  t.match(await complete(second), { kind: 'refused', record: { answer: given.answer } });
  t.strictSame((await recordAt(store, second)).answer, given.answer);

  const third = await doubtful(store);
  t.equal((await operator.releaseIfUnchanged(await viewOf(operator, third), by, retentionMs)).kind, 'done');
  t.equal((await complete(third)).kind, 'settled', 'released, not yet taken: its own answer still counts');
  t.strictSame((await recordAt(store, third)).answer, answer());
});

t.test(
  'purge: the answer is gone, nothing runs for a minute, nothing brings it back, nothing reaps it',
  async (t) => {
    const { store, operator } = setUp(t);
    const wanted = await completed(store);
    // Past its retention: then all that holds it is the block.
    await harness.moveTimes(wanted, { retainUntilMs: -1_000 });
    const purged = await operator.purgeIfUnchanged(await viewOf(operator, wanted), by);
    t.match(purged, { kind: 'done', record: { state: 'failed_retryable', status: null, bodyBytes: null } });
    const record = await recordAt(store, wanted);
    t.match(record, { state: 'failed_retryable', blocked: true, expired: false, answer: null });
    const next = reservation({ scope: wanted.scope, key: wanted.key });
    t.match(await store.takeOverIfUnchanged(record, next), { kind: 'exists', record: { blocked: true } });
    t.equal(await store.reap(100), 0);
    const late = await store.completeIfHeld({ ...heldBy(wanted), answer: answer(), retentionMs });
    t.match(late, { kind: 'refused', record: { state: 'failed_retryable' } });

    await harness.query(`UPDATE oncegate.record SET blocked_until = clock_timestamp() WHERE key = $1`, [
      wanted.key,
    ]);
    t.equal((await recordAt(store, wanted)).blocked, false);
    t.equal((await store.takeOverIfUnchanged(record, next)).kind, 'reserved');
    const [row] = await harness.query('SELECT blocked_until FROM oncegate.record WHERE key = $1', [
      wanted.key,
    ]);
    t.equal(row?.['blocked_until'], null);
  },
);

t.test('a purge keeps what retention is left', async (t) => {
  const { store, operator } = setUp(t);
  const wanted = await completed(store);
  const { retainUntilMs } = await viewOf(operator, wanted);
  await operator.purgeIfUnchanged(await viewOf(operator, wanted), by);
  t.equal((await viewOf(operator, wanted)).retainUntilMs, retainUntilMs);
});

t.test('an audit that cannot be written undoes the change', async (t) => {
  const { store, operator } = setUp(t);
  const wanted = await doubtful(store);
  const refused = await operator.releaseIfUnchanged(
    await viewOf(operator, wanted),
    { ...by, reason: '' },
    retentionMs,
  );
  t.match(refused, { kind: 'not_done', cause: /audit_has_a_reason/ });
  t.equal((await recordAt(store, wanted)).state, 'unknown');
});

t.test('a row that somebody holds is waited for, not for ever', async (t) => {
  const { store, operator } = setUp(t);
  const wanted = await doubtful(store);
  const seen = await viewOf(operator, wanted);
  const free = await harness.block(wanted);
  t.match(await operator.releaseIfUnchanged(seen, by, retentionMs), {
    kind: 'not_done',
    cause: /lock timeout/,
  });
  await free();
  t.equal((await operator.releaseIfUnchanged(seen, by, retentionMs)).kind, 'done');
});

t.test('list: by state, oldest first, by tenant, path and age', async (t) => {
  const harness = await postgresHarness(t);
  const [store] = harness.stores;
  const operator = operatorAt(t, harness.url);
  const young = await doubtful(store, { tenant: 'acme' });
  const old = await doubtful(store, { path: '/refunds' });
  await harness.query(
    `UPDATE oncegate.record SET reserved_at = reserved_at - interval '1 h' WHERE key = $1`,
    [old.key],
  );
  const hopeless = await doubtful(store);
  await harness.forceState(hopeless, 'dead_letter');
  const running = await reserved(store);
  const settled = await completed(store);
  const any = { olderThanMs: 0, tenant: null, path: null, limit: 10 };
  const keys = async (changes: object) =>
    (await operator.list({ ...any, states: ['unknown', 'dead_letter'], ...changes })).map(({ key }) => key);
  t.strictSame(await keys({}), [old.key, young.key, hopeless.key]);
  t.strictSame(await keys({ limit: 1 }), [old.key]);
  t.strictSame(await keys({ states: ['dead_letter'] }), [hopeless.key]);
  t.strictSame(await keys({ tenant: 'acme' }), [young.key]);
  t.strictSame(await keys({ path: '/refunds' }), [old.key]);
  t.strictSame(await keys({ olderThanMs: 60_000 }), [old.key]);
  t.strictSame(await keys({ states: ['in_progress'] }), [running.key]);
  t.strictSame(await keys({ states: ['completed'] }), [settled.key]);
  t.strictSame(await keys({ states: ['failed_retryable'] }), []);
});

t.test(
  'find: by the beginning of its hash, or its key; settled ones only where somebody had to do with them',
  async (t) => {
    const harness = await postgresHarness(t);
    const [store] = harness.stores;
    const operator = operatorAt(t, harness.url);
    const any = { hashPrefix: null, key: null, tenant: null, path: null, method: null, limit: 10 };
    const keys = async (changes: object) =>
      (await operator.find({ ...any, ...changes })).map(({ key }) => key);
    const unknown = await doubtful(store);
    const running = await reserved(store);
    const settled = await completed(store);
    for (const one of [unknown, running]) {
      t.strictSame(await keys({ hashPrefix: hashOf(one) }), [one.key]);
      t.strictSame(await keys({ hashPrefix: hashOf(one).slice(0, 8) }), [one.key]);
      t.strictSame(await keys({ key: one.key, path: one.path, method: 'POST' }), [one.key]);
      t.strictSame(await keys({ key: one.key, path: '/other' }), []);
    }
    t.strictSame(await keys({ hashPrefix: hashOf(settled) }), []);
    const everywhere = await operator.findAnywhere({ ...any, hashPrefix: hashOf(settled) });
    t.match(everywhere, [{ key: settled.key, bodyBytes: 13 }]);
    await operator.purgeIfUnchanged(await viewOf(operator, settled), by);
    t.strictSame(await keys({ hashPrefix: hashOf(settled) }), [settled.key], 'now somebody has');
    const late = await completed(store);
    const { scope, key, attempt, requestId } = reservation({ scope: late.scope, key: late.key });
    const evidence = { requestId, outcome: 'store', status: 201, answer: null } as const;
    await store.keepLateAnswer({ scope, key, attempt, ...evidence });
    t.strictSame(await keys({ key: late.key }), [late.key]);
    t.match((await operator.history(late)).lateAnswers, [
      { attempt, requestId, outcome: 'store', status: 201 },
    ]);
  },
);

t.test('a server that is away: not done, and said so', async (t) => {
  const { store, operator } = setUp(t);
  const wanted = await doubtful(store);
  const seen = await viewOf(operator, wanted);
  const nowhere = operatorAt(t, 'postgres://127.0.0.1:1/none');
  t.match(await nowhere.releaseIfUnchanged(seen, by, retentionMs), { kind: 'not_done' });
  await t.rejects(nowhere.at(wanted), { code: 'store_unavailable' });
});
