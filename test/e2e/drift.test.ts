import t from 'tap';
import { ask, problemOf } from '../helpers/client.ts';
import { query, testDatabase } from '../helpers/postgres.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { testUpstream } from '../helpers/upstream.ts';

/** Two instances on one store that do not agree: as in the middle of a rollout. Refused or correct, never two runs. */
t.test('another fingerprint rule: the same bytes are the same request, others are refused', async (t) => {
  const upstream = await testUpstream(t, (_, res) => res.writeHead(201).end('ran'));
  const { url: databaseUrl } = await testDatabase(t);
  const start = (config: string) => sidecar(t, { upstream: upstream.url, databaseUrl, config });
  const canonical = await start('');
  const others = [
    await start('defaults: { fingerprint: { body: raw } }'),
    await start('defaults: { fingerprint: { ignore: [/b] } }'),
  ];
  const body = '{"a":1,"b":2}';
  t.equal((await ask(`${canonical.dataUrl}/x`, { key: 'k', body })).status, 201);
  for (const { dataUrl } of others) {
    const same = await ask(`${dataUrl}/x`, { key: 'k', body });
    t.equal(same.headers['idempotent-replayed'], 'true');
    const reordered = await ask(`${dataUrl}/x`, { key: 'k', body: '{"b":2,"a":1}' });
    t.equal(problemOf(reordered).code, 'key_reused', 'digests of two rules cannot be compared');
  }
  t.equal(upstream.countOf('k'), 1);
});

t.test('other policies: who runs it decides how it ends, all others obey the record', async (t) => {
  const upstream = await testUpstream(t, (_, res) => res.writeHead(500).end('broken'));
  const { url: databaseUrl } = await testDatabase(t);
  const start = (config: string) => sidecar(t, { upstream: upstream.url, databaseUrl, config });
  const standard = await start('');
  const payments = await start('defaults: { outcomes: payments, dispatchMark: true, retention: 7d }');
  const stripe = await start('defaults: { outcomes: stripe }');
  t.equal((await ask(`${payments.dataUrl}/x`, { key: 'unknown', body: '{}' })).status, 500);
  for (const { dataUrl } of [standard, stripe, payments]) {
    const retry = await ask(`${dataUrl}/x`, { key: 'unknown', body: '{}' });
    t.equal(problemOf(retry).code, 'outcome_unknown');
  }
  t.equal((await ask(`${stripe.dataUrl}/x`, { key: 'stored', body: '{}' })).status, 500);
  for (const { dataUrl } of [standard, payments]) {
    const retry = await ask(`${dataUrl}/x`, { key: 'stored', body: '{}' });
    t.equal(retry.headers['idempotent-replayed'], 'true');
  }
  t.equal(upstream.countOf('unknown'), 1);
  t.equal(upstream.countOf('stored'), 1);
});

t.test('a route that one has and the other has not does not change whose key it is', async (t) => {
  const upstream = await testUpstream(t, (_, res) => res.writeHead(201).end('ran'));
  const { url: databaseUrl } = await testDatabase(t);
  const start = (config: string) => sidecar(t, { upstream: upstream.url, databaseUrl, config });
  const one = await start('routes: [{ path: /v1/*, retention: 7d }]');
  const other = await start('routes: [{ path: /v1/charges, outcomes: payments }]');
  t.equal((await ask(`${one.dataUrl}/v1/charges`, { key: 'k', body: '{}' })).status, 201);
  const retry = await ask(`${other.dataUrl}/v1/charges`, { key: 'k', body: '{}' });
  t.equal(retry.headers['idempotent-replayed'], 'true');
  t.equal(upstream.countOf('k'), 1);
});

t.test('a newer schema under an instance that runs: it goes on', async (t) => {
  const upstream = await testUpstream(t, (_, res) => res.writeHead(201).end('ran'));
  const { dataUrl, databaseUrl } = await sidecar(t, { upstream: upstream.url });
  const charge = (key: string) => ask(`${dataUrl}/x`, { key, body: '{}' });
  t.equal((await charge('before')).status, 201);
  // As a migration of a later version would: it only adds.
  await query(databaseUrl, 'ALTER TABLE oncegate.record ADD COLUMN later text');
  await query(databaseUrl, 'CREATE INDEX record_later ON oncegate.record (later) WHERE later IS NOT NULL');
  await query(databaseUrl, `INSERT INTO oncegate.migration (number, title) VALUES (9999, 'later')`);
  t.equal((await charge('before')).headers['idempotent-replayed'], 'true');
  t.equal((await charge('after')).status, 201);
  t.equal((await charge('after')).headers['idempotent-replayed'], 'true');
  t.equal(upstream.executions.length, 2);
});

t.test('a replica that knows no marks cannot leave one that looks unsent', async (t) => {
  const upstream = await testUpstream(t, () => {});
  const { dataUrl, databaseUrl } = await sidecar(t, {
    upstream: upstream.url,
    config: 'defaults: { dispatchMark: true }',
  });
  void ask(`${dataUrl}/x`, { key: 'k', body: '{}' }).catch(() => null);
  await upstream.received(1);
  await query(databaseUrl, 'UPDATE oncegate.record SET dispatched = false');
  const asBefore = `UPDATE oncegate.record SET state = 'unknown', last_error = 'lease_over'`;
  await t.rejects(query(databaseUrl, asBefore), /record_only_running_is_unsent/);
});
