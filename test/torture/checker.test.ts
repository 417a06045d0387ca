import t from 'tap';
import { check, rules } from '../../torture/checker.ts';
import type { Call, RunFacts, Start } from '../../torture/facts.ts';

/** A run in which all went well: sent once at 100, answered at 110, seen at 150, replayed at 300. */
const start: Start = {
  start: 's1',
  run: 7,
  call: '7.1',
  tenant: 'a',
  key: 'k',
  path: '/plain',
  attempt: 'attempt-1',
  replica: 0,
  at: 100,
  answer: { at: 110, status: 201, digest: 'bytes-1', token: 'token-1' },
};

const call: Call = {
  call: '7.1',
  run: 7,
  replica: 0,
  tenant: 'a',
  key: 'k',
  path: '/plain',
  body: 'same',
  beganAt: 90,
  endedAt: 150,
  end: 'answered',
  status: 201,
  how: 'executed',
  code: '',
  digest: 'bytes-1',
  names: { start: 's1', tenant: 'a', key: 'k' },
  text: '',
};

const replayed: Call = { ...call, call: '7.2', beganAt: 250, endedAt: 300, how: 'replayed' };
const look = { at: 400, tenant: 'a', key: 'k', state: 'completed', attempt: 'attempt-1' };

/** One of our own answers. */
function refused(status: number, code: string, more: Partial<Call> = {}): Call {
  const names = { start: '', tenant: '', key: '' };
  const base = { ...call, call: '7.9', status, code, how: '', digest: '', names };
  return { ...base, beganAt: 250, endedAt: 300, text: `{"code":"${code}"}`, ...more };
}

const well: RunFacts = {
  run: 7,
  fault: { point: 'request sent', action: 'kill', replica: 0, at: 120, healedAt: 200, storeCut: null },
  starts: [start],
  calls: [call, replayed],
  looks: [look],
  freed: [],
  stillInProgress: [],
  secret: 'secret-7',
};

function broken(changes: Partial<RunFacts>): string[] {
  return [...new Set(check({ ...well, ...changes }).map(({ rule }) => rule))];
}

const again: Start = { ...start, start: 's2', call: '7.2', attempt: 'attempt-2', at: 260 };
const freeing = { at: 110, status: 429, digest: 'bytes-1', token: 'token-1' };
/** A first start that no client saw the end of. */
const unseen = { ...start, answer: null };

t.test('a run in which all went well breaks nothing', async (t) => {
  t.same(broken({}), []);
  t.equal(Object.keys(rules).length, 8, 'every rule has a test below');
});

t.test('at most once', async (t) => {
  const rule = ['at most once'];
  const calls: Call[] = [];
  t.same(broken({ calls, starts: [start, again] }), rule, 'twice within retention');
  t.same(broken({ calls, starts: [unseen, again] }), rule, 'the first was never answered');
  t.same(broken({ calls, starts: [{ ...start, answer: freeing }, again] }), [], 'its own answer freed it');
  const late = { ...start, answer: { ...freeing, at: 270 } };
  t.same(
    broken({ calls, starts: [late, again] }),
    rule,
    'the answer that frees it came after the second start',
  );
  const third = { ...again, start: 's3', at: 270 };
  t.same(
    broken({ calls, starts: [{ ...start, answer: freeing }, again, third] }),
    rule,
    'freed once, ran three times',
  );
  const freed = [{ at: 200, tenant: 'a', key: 'k' }];
  t.same(broken({ calls, starts: [unseen, again], freed }), [], 'an operator freed it');
  t.same(
    broken({ calls, starts: [unseen, again], freed: [{ at: 261, tenant: 'a', key: 'k' }] }),
    rule,
    'too late',
  );
  t.same(
    broken({ calls, starts: [unseen, again], freed: [{ at: 200, tenant: 'b', key: 'k' }] }),
    rule,
    "another tenant's",
  );
  t.same(broken({ calls, starts: [start, { ...again, tenant: 'b' }] }), [], 'the same key of another tenant');
  const brief = { path: '/brief' };
  t.same(
    broken({
      calls,
      starts: [
        { ...start, ...brief },
        { ...again, ...brief, at: 1_109 },
      ],
    }),
    rule,
  );
  t.same(
    broken({
      calls,
      starts: [
        { ...start, ...brief },
        { ...again, ...brief, at: 1_110 },
      ],
    }),
    [],
    'past retention',
  );
  const failed = { ...freeing, status: 500 };
  const mixed = (replica: number) => ({ ...start, path: '/mixed', replica, answer: failed });
  t.same(broken({ calls, starts: [mixed(0), again] }), [], 'standard: 500 frees');
  t.same(broken({ calls, starts: [mixed(1), again] }), rule, 'payments: it is unknown');
  t.same(broken({ calls, starts: [mixed(2), again] }), rule, 'stripe: it is the answer');
});

t.test('the same answer', async (t) => {
  const rule = ['the same answer'];
  t.same(broken({ calls: [call, { ...replayed, digest: 'other' }] }), rule, 'bytes that nobody sent');
  t.same(broken({ calls: [call, refused(409, 'in_progress'), refused(503, 'store_unavailable')] }), []);
  t.same(broken({ calls: [call, refused(502, 'upstream_failed')] }), rule, 'the sign of another try');
  t.same(broken({ calls: [call, refused(504, 'upstream_timeout')] }), rule);
  t.same(
    broken({ calls: [call, refused(502, 'upstream_failed', { beganAt: 140 })] }),
    [],
    'asked before it was seen',
  );
  t.same(broken({ calls: [call, refused(422, 'key_reused')] }), rule, 'the same request is no other one');
  t.same(broken({ calls: [call, refused(422, 'key_reused', { body: 'differs' })] }), []);
  t.same(broken({ calls: [call, { ...replayed, body: 'differs' }] }), rule, 'another request got the answer');
  t.same(broken({ calls: [call, { ...refused(0, ''), end: 'cut', text: '' }] }), [], 'a cut says nothing');
  const second = { ...again, answer: { at: 265, status: 201, digest: 'bytes-2', token: 'token-2' } };
  const other = { ...replayed, digest: 'bytes-2', names: { start: 's2', tenant: 'a', key: 'k' } };
  const freed = [{ at: 200, tenant: 'a', key: 'k' }];
  t.ok(broken({ starts: [start, second], calls: [call, other], freed }).includes(rule[0] as string));
});

t.test('an answer that was seen is kept', async (t) => {
  const rule = ['an answer that was seen is kept'];
  t.same(broken({ looks: [{ ...look, state: 'unknown' }] }), rule);
  t.same(broken({ looks: [{ ...look, attempt: 'attempt-2' }] }), rule, 'it is the answer of another attempt');
  t.same(broken({ looks: [{ ...look, tenant: 'b' }] }), rule, 'it is gone');
  t.same(broken({ looks: [{ ...look, at: 200, state: 'in_progress' }, look] }), [], 'the last look counts');
  const path = '/brief';
  const brief = { starts: [{ ...start, path }], calls: [{ ...call, path }] };
  t.same(broken({ ...brief, looks: [{ ...look, tenant: 'b', at: 1_200 }] }), [], 'past its retention');
});

t.test('no store, no start', async (t) => {
  const rule = ['no store, no start'];
  const cut = (from: number, until: number) => ({ ...well.fault, storeCut: { from, until } });
  t.same(broken({ fault: cut(80, 200) }), rule, 'asked for and sent while it was cut');
  t.same(broken({ fault: cut(90, 200) }), rule, 'in the same millisecond');
  t.same(broken({ fault: cut(95, 200) }), [], 'asked for before: it may have been reserved');
  t.same(broken({ fault: cut(80, 99) }), [], 'sent once the line was back');
  t.same(broken({ fault: { ...cut(80, 200), replica: 1 } }), [], 'another sidecar was cut off');
});

t.test('unknown never runs', async (t) => {
  const rule = ['unknown never runs'];
  const calls: Call[] = [];
  const unknown = { ...look, at: 120, state: 'unknown' };
  const late = { ...unseen, at: 250 };
  const stop = { ...well.fault, action: 'stop' };
  t.same(broken({ calls, looks: [unknown], starts: [late] }), rule, 'its own attempt, after it was swept');
  t.same(broken({ calls, looks: [unknown], starts: [late], fault: stop }), rule);
  const gap = { ...stop, point: 'request start' };
  t.same(
    broken({ calls, looks: [unknown], starts: [late], fault: gap }),
    [],
    'asleep between check and write',
  );
  t.same(broken({ calls, looks: [unknown], starts: [{ ...unseen, at: 200 }] }), [], 'it was on its way');
  const told = refused(409, 'outcome_unknown', { beganAt: 115, endedAt: 120 });
  t.same(
    broken({ calls: [told], looks: [], starts: [again] }),
    rule,
    'a retry ran what a client heard to be unknown',
  );
  const freed = [{ at: 200, tenant: 'a', key: 'k' }];
  t.same(broken({ calls: [told], looks: [], starts: [again], freed }), [], 'an operator freed it');
  const left = { ...look, at: 500, state: 'unknown', attempt: again.attempt };
  t.same(
    broken({ calls: [], looks: [unknown, left], starts: [start, again], freed }),
    [],
    'an operator freed it, and the answer of the next attempt left it unknown',
  );
  const unsent = refused(502, 'upstream_unreachable', { how: 'released', beganAt: 90, endedAt: 240 });
  const self = { calls: [unsent], looks: [unknown], starts: [again] };
  t.same(broken({ ...self, fault: stop }), [], 'its own attempt woke and said that it was never sent');
  t.same(broken(self), rule, 'nobody is left to say so');
  t.same(broken({ ...self, calls: [], fault: stop }), rule, 'nobody said so');
  t.ok(
    broken({ ...self, starts: [unseen, again], fault: stop }).includes(rule[0] as string),
    'and it was sent',
  );
});

t.test('nothing stays in progress', async (t) => {
  t.same(broken({ stillInProgress: ['a k'] }), ['nothing stays in progress']);
});

t.test('nothing crosses tenants', async (t) => {
  const rule = 'nothing crosses tenants';
  const stranger = { ...replayed, tenant: 'b' };
  t.ok(broken({ calls: [call, stranger] }).includes(rule), 'the answer of another tenant');
  const told = refused(409, 'in_progress', { tenant: 'b', text: 'see token-1' });
  t.same(broken({ calls: [call, told] }), [rule], 'a part of it');
  t.ok(broken({ calls: [call, { ...replayed, key: 'k2' }] }).includes(rule), 'the answer of another key');
});

t.test('422 shows nothing', async (t) => {
  const rule = ['422 shows nothing'];
  const told = (text: string) => refused(422, 'key_reused', { body: 'differs', text });
  t.same(broken({ calls: [call, told('the first got token-1')] }), rule, 'of the answer');
  t.same(broken({ calls: [call, told('the first was secret-7')] }), rule, 'of the request');
  t.same(broken({ calls: [call, told('key was used before')] }), []);
});
