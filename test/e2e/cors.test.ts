import { randomUUID } from 'node:crypto';
import t from 'tap';
import { type Answer, ask, problemOf, send } from '../helpers/client.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { testUpstream } from '../helpers/upstream.ts';
import { closedPort } from '../proxy/pass-through-server.ts';

const shop = 'https://shop.example';
const other = 'https://other.example';

const grantOf = ({ headers }: Answer) => headers['access-control-allow-origin'];
const exposedBy = ({ headers }: Answer) =>
  new Set(`${headers['access-control-expose-headers'] ?? ''}`.split(', ').filter((name) => name !== ''));
const from = (origin: string) => ({ headers: { Origin: origin } });

t.test('a page may read our problems where its origin is listed', async (t) => {
  const upstream = await testUpstream(t);
  const nowhere = await closedPort();
  const { dataUrl } = await sidecar(t, {
    upstream: upstream.url,
    config: `
defaults: { cors: { origins: ['${shop}'] }, inFlight: { wait: 0s } }
routes:
  - { path: /closed, cors: { origins: [] } }
  - { path: /nowhere, upstream: { url: 'http://127.0.0.1:${nowhere}' } }`,
  });
  await send(`${dataUrl}/a`, 'k');
  const problems: [code: string, () => Promise<Answer>][] = [
    ['key_missing', () => ask(`${dataUrl}/a`, { body: '{}', ...from(shop) })],
    ['key_reused', () => send(`${dataUrl}/a`, 'k', { body: '{"amount":2}', ...from(shop) })],
    ['upstream_unreachable', () => send(`${dataUrl}/nowhere`, 'k', from(shop))],
    ['upstream_unreachable', () => ask(`${dataUrl}/nowhere`, { method: 'GET', ...from(shop) })],
    ['request_invalid', () => send(`${dataUrl}/a//b`, 'k', from(shop))],
  ];
  for (const [code, get] of problems) {
    const answer = await get();
    t.equal(problemOf(answer).code, code);
    t.match(answer.headers, {
      'access-control-allow-origin': shop,
      'access-control-allow-credentials': 'true',
      vary: 'Origin',
    });
    for (const name of ['X-Request-Id', 'Retry-After', 'Idempotency-Status'])
      t.ok(exposedBy(answer).has(name), name);
  }
  const refused = await send(`${dataUrl}/a`, 'k', { body: '{"amount":2}', ...from(other) });
  t.same([refused.status, grantOf(refused), refused.headers['vary']], [422, undefined, 'Origin']);
  const closed = await ask(`${dataUrl}/closed`, { body: '{}', ...from(shop) });
  t.same([closed.status, grantOf(closed), closed.headers['vary']], [400, undefined, undefined]);
});

t.test('our headers can be read where the answer can, the first time and again', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, {
    upstream: upstream.url,
    config: 'defaults: { maxStoredBody: 1kb }',
  });
  const ours = ['Idempotency-Status', 'Idempotent-Replayed', 'Idempotency-Expires', 'X-Request-Id'];
  const headers = { 'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': 'Location' };
  const key = randomUUID();
  for (const status of ['executed', 'replayed']) {
    const answer = await send(`${dataUrl}/a`, key, { steer: { headers }, ...from(shop) });
    t.equal(answer.headers['idempotency-status'], status);
    t.equal(grantOf(answer), '*');
    for (const name of [...ours, 'Location']) t.ok(exposedBy(answer).has(name), `${status}: ${name}`);
  }
  const large = await send(`${dataUrl}/a`, randomUUID(), {
    steer: { headers, bytes: 100_000 },
    ...from(shop),
  });
  for (const name of ours) t.ok(exposedBy(large).has(name), `streamed: ${name}`);
  const passed = await ask(`${dataUrl}/a`, {
    method: 'GET',
    headers: {
      Origin: shop,
      'X-Steer': JSON.stringify({ headers: { ...headers, 'Access-Control-Expose-Headers': 'Link' } }),
    },
  });
  t.same([...exposedBy(passed)].sort(), ['Link', 'X-Request-Id'], 'passed through');
  const plain = await send(`${dataUrl}/a`, randomUUID(), from(shop));
  t.equal(
    plain.headers['access-control-expose-headers'],
    undefined,
    'nothing is added to an answer without grant',
  );
});

t.test('a replay never repeats the grant of another origin', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, {
    upstream: upstream.url,
    config: `
routes:
  - { path: /listed, cors: { origins: ['${other}'] } }`,
  });
  const headers = { 'Access-Control-Allow-Origin': shop, 'Access-Control-Allow-Credentials': 'true' };
  for (const [path, granted] of [
    ['/a', undefined],
    ['/listed', other],
  ]) {
    const key = randomUUID();
    const url = `${dataUrl}${path}`;
    const first = await send(url, key, { steer: { headers }, ...from(shop) });
    t.equal(grantOf(first), shop);
    const rows: [origin: string | null, string | undefined][] = [
      [shop, shop],
      [other, granted],
      ['null', undefined],
      [null, undefined],
      [shop, shop],
    ];
    for (const [origin, wanted] of rows) {
      const retry = await send(url, key, origin === null ? {} : from(origin));
      t.equal(retry.headers['idempotency-status'], 'replayed');
      t.equal(grantOf(retry), wanted, `${path}, ${origin}`);
      t.equal(retry.headers['access-control-allow-credentials'], wanted === undefined ? undefined : 'true');
      t.equal(retry.headers['vary'], wanted === shop ? undefined : 'Origin');
    }
    t.equal(upstream.countOf(key), 1);
  }
});

t.test('who waited for the request of another origin gets no grant of it', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, { upstream: upstream.url });
  for (const status of [201, 429]) {
    const key = `waits-${status}`;
    const before = upstream.executions.length;
    const headers = { 'Access-Control-Allow-Origin': shop };
    const first = send(`${dataUrl}/a`, key, { steer: { hold: true, status, headers }, ...from(shop) });
    await upstream.received(before + 1);
    const waits = send(`${dataUrl}/a`, key, from(other));
    // It has got as far as waiting: others have since gone the same way and back.
    for (const body of ['1', '2', '3']) await send(`${dataUrl}/a`, key, { body });
    upstream.letGo();
    t.same([(await first).status, grantOf(await first)], [status, shop]);
    t.same([(await waits).status, grantOf(await waits)], [status, undefined]);
  }
});

t.test('a preflight is for the upstream', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, {
    upstream: upstream.url,
    config: `defaults: { cors: { origins: ['${shop}'] } }`,
  });
  const headers = {
    Origin: shop,
    'Access-Control-Request-Method': 'POST',
    'Access-Control-Request-Headers': 'idempotency-key',
  };
  const steer = JSON.stringify({
    status: 204,
    headers: { 'Access-Control-Allow-Origin': 'https://its.own' },
  });
  const answer = await ask(`${dataUrl}/a`, { method: 'OPTIONS', headers: { ...headers, 'X-Steer': steer } });
  t.same([answer.status, grantOf(answer)], [204, 'https://its.own']);
  t.equal(upstream.executions.length, 1);
});
