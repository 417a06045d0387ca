import t from 'tap';
import { decide, sameRequest } from '../../src/core/decide.ts';
import { type Fingerprint, type StoredAnswer, type StoredRecord, states } from '../../src/core/record.ts';

function fingerprint(digest: string, raw = digest, rule = 'v1:canonical'): Fingerprint {
  return { rule, digest: Buffer.from(digest), raw: Buffer.from(raw), headers: null };
}

const answer: StoredAnswer = {
  status: 201,
  headers: Buffer.from([1]),
  body: Buffer.from('{}'),
  closeFramed: false,
};

function record(facts: Partial<StoredRecord>): StoredRecord {
  return {
    attempt: 'attempt-1',
    epoch: '7',
    state: 'completed',
    fingerprint: fingerprint('same'),
    hadCredentials: false,
    expired: false,
    retainUntilMs: 1000,
    blocked: false,
    status: null,
    answer,
    ...facts,
  };
}

const asking = { fingerprint: fingerprint('same'), hasCredentials: false };
const other = { fingerprint: fingerprint('other'), hasCredentials: false };
const refuse = (code: string) => ({ kind: 'refuse', code });

t.test('the same request, by state', (t) => {
  t.strictSame(decide(record({}), asking), { kind: 'replay', answer, retainUntilMs: 1000 });
  t.strictSame(decide(record({ state: 'in_progress' }), asking), {
    kind: 'in_progress',
    attempt: 'attempt-1',
  });
  t.strictSame(decide(record({ state: 'unknown' }), asking), refuse('outcome_unknown'));
  t.strictSame(decide(record({ state: 'dead_letter' }), asking), refuse('outcome_unknown'));
  const failed = record({ state: 'failed_retryable', answer: null });
  t.strictSame(decide(failed, asking), { kind: 'take_over', previous: failed });
  t.end();
});

t.test('an answer that was not kept is not run again', (t) => {
  t.strictSame(decide(record({ answer: null }), asking), refuse('response_not_retained'));
  t.strictSame(
    decide(record({ answer: { ...answer, body: null } }), asking),
    refuse('response_not_retained'),
  );
  t.match(
    decide(record({ answer: { ...answer, body: Buffer.alloc(0) } }), asking),
    { kind: 'replay' },
    'empty is kept',
  );
  t.end();
});

t.test('another request is refused before the state is looked at', (t) => {
  for (const state of states) t.strictSame(decide(record({ state }), other), refuse('key_reused'), state);
  const withCredentials = record({ hadCredentials: true });
  t.strictSame(decide(withCredentials, other), refuse('key_reused'), 'and before the caller');
  t.end();
});

t.test('no credentials where the first request had some', (t) => {
  for (const state of states) {
    t.strictSame(decide(record({ state, hadCredentials: true }), asking), refuse('caller_differs'), state);
  }
  const caller = { ...asking, hasCredentials: true };
  t.match(decide(record({ hadCredentials: true }), caller), { kind: 'replay' });
  t.match(
    decide(record({ hadCredentials: false }), caller),
    { kind: 'replay' },
    'more than the first is fine',
  );
  t.end();
});

t.test('past retention: settled records are free for any request, others never expire into running', (t) => {
  for (const state of ['completed', 'failed_retryable'] as const) {
    const expired = record({ state, expired: true, hadCredentials: true });
    t.strictSame(decide(expired, asking), { kind: 'take_over', previous: expired }, state);
    t.strictSame(
      decide(expired, other),
      { kind: 'take_over', previous: expired },
      `${state}, another request`,
    );
  }
  for (const state of ['in_progress', 'unknown', 'dead_letter'] as const) {
    t.not(decide(record({ state, expired: true }), asking).kind, 'take_over', state);
    t.strictSame(
      decide(record({ state, expired: true }), other),
      refuse('key_reused'),
      `${state}, another request`,
    );
  }
  t.end();
});

t.test('the same request: identical bytes under any rule, or equal digests under one rule', (t) => {
  t.ok(sameRequest(fingerprint('a', 'raw', 'v1:canonical'), fingerprint('b', 'raw', 'v2:canonical')));
  t.ok(sameRequest(fingerprint('a', 'raw 1'), fingerprint('a', 'raw 2')));
  t.notOk(sameRequest(fingerprint('a', 'raw 1', 'v1:canonical'), fingerprint('a', 'raw 2', 'v1:raw')));
  t.notOk(sameRequest(fingerprint('a', 'raw 1'), fingerprint('b', 'raw 2')));
  t.end();
});

t.test('headers that the config lists: compared under one list, and under another the bytes alone', (t) => {
  const listed = (
    digest: string,
    raw: string,
    headers: [list: string, digest: string] | null,
  ): Fingerprint => ({
    ...fingerprint(digest, raw),
    headers: headers === null ? null : { list: headers[0], digest: headers[1] },
  });
  const stored = listed('same', 'raw', ['l', 'a']);
  t.ok(sameRequest(stored, listed('same', 'raw', ['l', 'a'])));
  t.ok(sameRequest(stored, listed('same', 'other', ['l', 'a'])));
  t.notOk(sameRequest(stored, listed('other', 'other', ['l', 'a'])));
  t.notOk(sameRequest(stored, listed('same', 'raw', ['l', 'b'])), 'identical bytes under another account');
  for (const headers of [['m', 'a'], ['m', 'b'], null] as const) {
    const list = headers === null ? null : ([...headers] as [string, string]);
    t.ok(sameRequest(stored, listed('other', 'raw', list)), 'another list, the same bytes');
    t.ok(sameRequest(listed('other', 'raw', list), stored), 'and the other way round');
    t.notOk(sameRequest(stored, listed('same', 'other', list)), 'another list, other bytes');
  }
  t.end();
});

t.test('released after 401 or 407: any request may run', (t) => {
  for (const status of [401, 407]) {
    const free = record({ state: 'failed_retryable', answer: null, status, hadCredentials: true });
    t.strictSame(decide(free, other), { kind: 'take_over', previous: free });
    t.strictSame(decide(free, asking), { kind: 'take_over', previous: free });
    t.strictSame(decide({ ...free, blocked: true }, other), refuse('key_reused'));
    for (const state of states.filter((one) => one !== 'failed_retryable'))
      t.strictSame(decide(record({ state, status }), other), refuse('key_reused'), state);
  }
  for (const status of [null, 403, 429, 500])
    t.strictSame(
      decide(record({ state: 'failed_retryable', answer: null, status }), other),
      refuse('key_reused'),
    );
  t.end();
});

t.test('purged a moment ago: nothing runs, and nothing of the old answer is seen', (t) => {
  const purged = record({ state: 'failed_retryable', answer: null, blocked: true });
  t.strictSame(decide(purged, asking), refuse('in_progress'));
  t.strictSame(decide(purged, other), refuse('key_reused'));
  t.strictSame(
    decide({ ...purged, expired: true }, asking),
    refuse('in_progress'),
    'also past its retention',
  );
  const free = { ...purged, blocked: false };
  t.strictSame(decide(free, asking), { kind: 'take_over', previous: free });
  t.end();
});
