import t from 'tap';
import { ask, problemOf } from '../helpers/client.ts';
import { testDatabase } from '../helpers/postgres.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { testUpstream } from '../helpers/upstream.ts';

const body = '{"amount":1}';

t.test('one key and body under another account do not get the first one’s charge', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, {
    upstream: upstream.url,
    config: `
defaults: { fingerprint: { headers: [X-Org] } }
routes:
  - { path: /stripe, dialect: stripe }
  - { path: /plain, fingerprint: { headers: [] } }`,
  });
  const charge = (path: string, headers: Record<string, string | string[]>, sent = body) =>
    ask(dataUrl + path, { key: 'k', headers, body: sent });
  const first = { 'Stripe-Account': 'acct_1', 'X-Org': 'o' };
  const others: Record<string, string | string[]>[] = [
    { 'Stripe-Account': 'acct_2', 'X-Org': 'o' },
    { 'Stripe-Account': 'acct_1', 'X-Org': 'p' },
    { 'Stripe-Account': 'acct_1' },
    { 'X-Org': 'o' },
    { 'Stripe-Account': '', 'X-Org': 'o' },
    { ...first, 'Stripe-Context': 'acct_2' },
    { 'Stripe-Account': ['acct_1', 'acct_2'], 'X-Org': 'o' },
    { ...first, Stripe_Account: 'acct_2' },
    { ...first, Connection: 'Stripe-Account' },
  ];
  t.equal((await charge('/stripe', first)).status, 201);
  // The second is answered from the store, the third from memory.
  for (let i = 0; i < 2; i += 1) {
    const same = await charge('/stripe', { 'X-ORG': 'o', 'stripe-account': 'acct_1' });
    t.equal(same.headers['idempotency-status'], 'replayed');
    const reordered = await charge('/stripe', first, '{"amount": 1}');
    t.equal(reordered.headers['idempotency-status'], 'replayed', 'the bodies are compared as ever');
    for (const other of others) {
      const answer = await charge('/stripe', other);
      t.equal(answer.status, 400, JSON.stringify(other));
      t.match(answer.body.toString(), '"type":"idempotency_error"');
    }
  }
  t.equal((await charge('/other', first)).status, 201);
  t.equal(problemOf(await charge('/other', { ...first, 'X-Org': 'p' })).code, 'key_reused');
  const account = await charge('/other', { ...first, 'Stripe-Account': 'acct_2' });
  t.equal(account.headers['idempotency-status'], 'replayed', 'not listed there');
  t.equal((await charge('/plain', first)).status, 201);
  t.equal((await charge('/plain', {})).headers['idempotency-status'], 'replayed', 'nothing is listed there');
  t.equal(upstream.executions.length, 3);
});

t.test('under another list the bytes alone decide', async (t) => {
  const upstream = await testUpstream(t);
  const { url: databaseUrl } = await testDatabase(t);
  const start = (list: string) =>
    sidecar(t, {
      upstream: upstream.url,
      databaseUrl,
      config: `defaults: { fingerprint: { headers: [${list}] } }`,
    });
  const [none, org, both, turned] = await Promise.all(
    ['', 'X-Org', 'X-Org, X-Area', 'x-area, x_org'].map(start),
  );
  const headers = { 'X-Org': 'o', 'X-Area': 'a' };
  const all = [none, org, both, turned];
  for (const [i, first] of all.entries()) {
    const key = `k${i}`;
    t.equal((await ask(`${first?.dataUrl}/x`, { key, headers, body })).status, 201);
    for (const one of all) {
      const retry = await ask(`${one?.dataUrl}/x`, { key, headers, body });
      t.equal(retry.headers['idempotency-status'], 'replayed', 'an identical retry never gets 422');
    }
  }
  const org2 = { headers: { 'X-Org': 'p', 'X-Area': 'a' }, body };
  t.equal(
    (await ask(`${none?.dataUrl}/x`, { key: 'k1', ...org2 })).headers['idempotency-status'],
    'replayed',
  );
  t.equal(
    problemOf(await ask(`${turned?.dataUrl}/x`, { key: 'k2', ...org2 })).code,
    'key_reused',
    'one list',
  );
  const reordered = await ask(`${both?.dataUrl}/x`, { key: 'k1', headers, body: '{"amount": 1}' });
  t.equal(problemOf(reordered).code, 'key_reused', 'digests of two lists cannot be compared');
  t.equal(upstream.executions.length, 4);
});

t.test('whoever takes a released key over leaves its own', async (t) => {
  const upstream = await testUpstream(t, (_, res) =>
    res.writeHead(upstream.executions.length === 1 ? 429 : 201).end(),
  );
  const { dataUrl } = await sidecar(t, {
    upstream: upstream.url,
    config: 'defaults: { dialect: stripe, retention: 1h }',
  });
  const charge = (account: string) =>
    ask(`${dataUrl}/x`, { key: 'k', headers: { 'Stripe-Account': account }, body });
  t.equal((await charge('acct_1')).status, 429);
  t.equal((await charge('acct_2')).status, 400, 'released, and another request all the same');
  t.equal((await charge('acct_1')).status, 201);
  t.equal((await charge('acct_1')).headers['idempotency-status'], 'replayed');
  t.equal((await charge('acct_2')).status, 400);
  t.equal(upstream.executions.length, 2);
});
