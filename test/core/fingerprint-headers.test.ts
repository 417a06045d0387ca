import t from 'tap';
import type { HeaderList } from '../../src/core/fingerprint-headers.ts';
import { countedHeaders, headerDigestOf, headerListOf } from '../../src/core/fingerprint-headers.ts';
import { createMemos } from '../../src/core/memos.ts';

const list = ['stripe-account', 'x-org'];
const digestOf = (rawHeaders: readonly string[], names: readonly string[] = list) =>
  headerDigestOf(createMemos(), rawHeaders, headerListOf(names) as HeaderList).digest;

t.test('each of these is another request', async (t) => {
  const all: string[][] = [
    [],
    ['Stripe-Account', ''],
    ['Stripe-Account', 'a'],
    ['Stripe-Account', 'A'],
    ['Stripe_Account', 'a'],
    ['X-Org', 'a'],
    ['Stripe-Account', 'a', 'X-Org', 'a'],
    ['Stripe-Account', 'a', 'Stripe-Account', 'b'],
    ['Stripe-Account', 'b', 'Stripe-Account', 'a'],
    ['Stripe-Account', 'a', 'Stripe.Account', 'b'],
    ['Stripe-Account', 'a, b'],
  ];
  t.equal(new Set(all.map((one) => digestOf(one))).size, all.length);
});

t.test('these are the same', async (t) => {
  const a = digestOf(['Stripe-Account', 'a']);
  t.equal(digestOf(['stripe-ACCOUNT', 'a']), a, 'letter case of the name');
  t.equal(digestOf(['Host', 'h', 'Stripe-Account', 'a', 'X-Other', '1']), a, 'what is not listed');
  t.equal(
    digestOf(['X-Org', 'o', 'Stripe-Account', 'a']),
    digestOf(['Stripe-Account', 'a', 'X-Org', 'o']),
    'order',
  );
  const removed = ['Connection', 'Stripe-Account', 'Stripe-Account', 'a'];
  t.equal(digestOf(removed), digestOf([]), 'one that does not reach the upstream');
});

t.test('the id is that of the list, whatever its order', async (t) => {
  const idOf = (names: readonly string[]) => headerListOf(names)?.id;
  t.equal(headerListOf([]), null);
  t.match(idOf(['a', 'b']), /^[0-9a-f]{32}$/);
  t.equal(idOf(['a', 'b']), idOf(['b', 'a', 'a']));
  t.equal(idOf(['a_b']), idOf(['a-b']));
  t.not(idOf(['a', 'b']), idOf(['ab']));
});

t.test('in the stripe dialect the account always counts', async (t) => {
  t.same(countedHeaders([], 'ietf'), []);
  t.same(countedHeaders([], 'stripe'), ['stripe-account', 'stripe-context']);
  t.same(countedHeaders(['x-org'], 'stripe'), ['x-org', 'stripe-account', 'stripe-context']);
});
