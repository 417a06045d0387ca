import t from 'tap';
import type { Policy } from '../../src/core/policy.ts';
import type { Outcome, OutcomeTable } from '../../src/core/settle.ts';
import { outcomeOf } from '../../src/core/settle.ts';
import { createStricter, stricterOf } from '../../src/core/stricter-policy.ts';

const policy = (facts: Partial<Policy>) =>
  ({ methods: ['POST'], requireKey: true, retentionMs: 1, outcomes: table('standard'), ...facts }) as Policy;
const table = (preset: OutcomeTable['preset'], overrides: OutcomeTable['overrides'] = {}): OutcomeTable => ({
  preset,
  overrides,
});

t.test('what one of the two asks for holds, all else is as the first says', async (t) => {
  const post = policy({ dialect: 'stripe', requireKey: false, retentionMs: 5 });
  const put = policy({ methods: ['PUT'], dialect: 'ietf', retentionMs: 7 });
  const both = { methods: ['POST', 'PUT'], requireKey: true, retentionMs: 7, dialect: 'stripe' };
  t.match(stricterOf(post, put), both);
  t.match(stricterOf(put, post), {
    methods: ['PUT', 'POST'],
    requireKey: true,
    retentionMs: 7,
    dialect: 'ietf',
  });
  t.match(stricterOf(post, policy({ requireKey: false })), { requireKey: false, retentionMs: 5 });
});

t.test('each pair is made once, and the other way round it is another', async (t) => {
  const [post, put, patch] = [policy({}), policy({ methods: ['PUT'] }), policy({ methods: ['PATCH'] })];
  const stricter = createStricter();
  t.strictSame(stricter(post, put), stricterOf(post, put));
  t.equal(stricter(post, put), stricter(post, put));
  t.same(stricter(put, post).methods, ['PUT', 'POST']);
  t.same(stricter(post, patch).methods, ['POST', 'PATCH'], 'a second one of the same policy');
  t.equal(stricter(post, put), stricter(post, put));
});

t.test('of two outcomes, the one that lets less run again', async (t) => {
  const rows: [a: OutcomeTable, b: OutcomeTable, status: number, outcome: Outcome][] = [
    [table('standard'), table('payments'), 500, 'unknown'],
    [table('standard'), table('stripe'), 500, 'store'],
    [table('standard'), table('stripe'), 502, 'unknown'],
    [table('standard'), table('standard'), 503, 'unknown'],
    [table('standard'), table('standard'), 500, 'release'],
    [table('standard', { 409: 'release' }), table('standard'), 409, 'store'],
    [table('payments', { 409: 'release' }), table('standard', { 409: 'release' }), 409, 'release'],
    [table('standard'), table('payments'), 201, 'store'],
  ];
  for (const [a, b, status, outcome] of rows) {
    for (const [first, second] of [
      [a, b],
      [b, a],
    ] as const) {
      const { outcomes } = stricterOf(policy({ outcomes: first }), policy({ outcomes: second }));
      t.equal(outcomeOf(outcomes, status, true), outcome, `${first.preset} ${second.preset} ${status}`);
      const isPayments = [first, second].some(({ preset }) => preset === 'payments');
      t.equal(outcomes.preset === 'payments', isPayments, 'an answer that a close ended');
    }
  }
});
