import t from 'tap';
import type { StoredRecord } from '../../src/core/record.ts';
import { encodeStored } from '../../src/core/response.ts';
import { type AnswerRefused, answerRefused } from '../../src/events.ts';
import { Attempts } from '../../src/proxy/attempts.ts';
import { complete, giveUp } from '../../src/proxy/complete.ts';
import type { ProxyDeps } from '../../src/proxy/deps.ts';
import type { Exchange } from '../../src/proxy/exchange.ts';
import type { Forwarded } from '../../src/proxy/forward.ts';
import type { Claim } from '../../src/proxy/reserve.ts';
import type { SettleResult, Store } from '../../src/store/store.ts';
import { digest, someFingerprint } from '../store/samples.ts';

const wanted: Claim = {
  scope: digest('scope'),
  key: 'k',
  fingerprint: someFingerprint(),
  hasCredentials: false,
  tenant: null,
};

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

function scene(result: SettleResult) {
  const attempts = new Attempts();
  const attempt = attempts.open('instance', 1_000);
  const settle = async () => result;
  const store = {
    completeIfHeld: settle,
    releaseIfHeld: settle,
    markUnknownIfHeld: settle,
  } as unknown as Store;
  const exchange = {
    policy: { outcomes: { preset: 'standard', overrides: {} }, retentionMs: 1_000, replayStatus: 'original' },
    requestId: 'r',
    error: null,
  } as unknown as Exchange;
  return { deps: { store, attempts } as unknown as ProxyDeps, attempts, attempt, exchange };
}

const record = (changes: Partial<StoredRecord>): StoredRecord => ({
  attempt: 'another',
  epoch: '2',
  state: 'in_progress',
  fingerprint: wanted.fingerprint,
  hadCredentials: false,
  expired: false,
  retainUntilMs: null,
  answer: null,
  ...changes,
});

const kept = { status: 200, headers: encodeStored([]), body: Buffer.from('kept'), closeFramed: false };

t.test('settled: the client gets the answer, and the attempt is no longer known', async (t) => {
  const { deps, attempts, attempt, exchange } = scene({ kind: 'settled', retainUntilMs: 5 });
  const { first, others } = await complete(deps, exchange, { wanted, attempt, forwarded: answered });
  t.match(first, { kind: 'answer', status: 201, idempotency: 'executed', retainUntilMs: 5 });
  t.match(others, { kind: 'answer', status: 201, idempotency: 'replayed', headers: ['X-A', '1'] });
  t.equal(attempts.isKnown(attempt.id), false);
});

t.test('a settlement that the store never took: the attempt stays known, for its request ran', async (t) => {
  const { deps, attempts, attempt, exchange } = scene({ kind: 'unconfirmed', cause: new Error('closed') });
  const { first } = await complete(deps, exchange, { wanted, attempt, forwarded: answered });
  t.match(first, { kind: 'problem', code: 'answer_unsaved' });
  t.equal(attempts.isKnown(attempt.id), true);
  t.equal(attempts.size, 0);
});

t.test('a fault of ours: unknown, and known where not even that could be written', async (t) => {
  for (const [result, isKnown] of [
    [{ kind: 'settled', retainUntilMs: null }, false],
    [{ kind: 'unconfirmed', cause: new Error('closed') }, true],
  ] as const) {
    const { deps, attempts, attempt, exchange } = scene(result);
    const waiting = attempt.concluded();
    t.match(await giveUp(deps, exchange, wanted, attempt), { kind: 'problem', code: 'upstream_failed' });
    t.match(await waiting, { code: 'upstream_failed' }, 'those who wait are told');
    t.equal(attempts.isKnown(attempt.id), isKnown);
  }
});

t.test('refused: what is kept counts, not what we got', async (t) => {
  const rows: readonly [StoredRecord | null, object][] = [
    [record({ state: 'completed', answer: kept }), { kind: 'answer', status: 200, body: kept.body }],
    [record({ state: 'completed', answer: { ...kept, body: null } }), { code: 'response_not_retained' }],
    [record({}), { code: 'in_progress' }],
    [record({ state: 'failed_retryable', retainUntilMs: 1 }), { code: 'in_progress' }],
    [record({ state: 'unknown' }), { code: 'outcome_unknown' }],
    [record({ fingerprint: someFingerprint() }), { code: 'key_reused' }],
    [null, { code: 'outcome_unknown' }],
  ];
  for (const [found, reply] of rows) {
    const { deps, attempts, attempt, exchange } = scene({ kind: 'refused', record: found });
    const refused: AnswerRefused[] = [];
    const end = answerRefused.subscribe((one) => refused.push(one));
    const { first, others } = await complete(deps, exchange, { wanted, attempt, forwarded: answered });
    end();
    t.match(first, reply, found?.state ?? 'gone');
    t.equal(others, first);
    t.notMatch(JSON.stringify(first), Buffer.from('ours').toString('base64'));
    t.match(refused, [{ attempt: attempt.id, status: 201, outcome: 'store' }]);
    t.equal(exchange.outcome, 'refused');
    t.equal(attempts.isKnown(attempt.id), false);
  }
});
