import t from 'tap';
import { ask } from '../helpers/client.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { type Execution, testUpstream } from '../helpers/upstream.ts';
import { exchange } from '../proxy/pass-through-server.ts';

/** What of a guarded request reaches the upstream, and which upstream. */

const names = ({ rawHeaders }: Execution) =>
  rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());

t.test('the key: kept, stripped, renamed', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, {
    upstream: upstream.url,
    config: `
routes:
  - { path: /strip, forwardKey: strip }
  - { path: /rename, forwardKey: { rename: X-Original-Key } }`,
  });
  const got = async (path: string, headers: Record<string, string>) => {
    t.equal((await ask(dataUrl + path, { headers, body: '{}' })).status, 201, path);
    const last = upstream.executions.at(-1)?.headers ?? {};
    return [last['idempotency-key'], last['x-idempotency-key'], last['x-original-key']];
  };
  const both = { 'Idempotency-Key': '"a"', 'X-Idempotency-Key': 'a', 'X-Original-Key': 'forged' };
  t.same(await got('/keep', both), ['"a"', 'a', 'forged'], 'as the client sent it');
  t.same(await got('/strip', both), [undefined, undefined, 'forged']);
  t.same(await got('/rename', both), [undefined, undefined, 'a']);
  t.same(await got('/rename', { 'Idempotency-Key': '"a b"' }), [undefined, undefined, '"a b"']);
});

t.test("ours are ours, and a client's own headers are its own", async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, {
    upstream: upstream.url,
    config: 'tenant: { from: { header: X-Tenant } }',
  });
  const port = Number(new URL(dataUrl).port);
  const answer = await exchange(
    t,
    port,
    [
      'POST /a?b=c HTTP/1.1',
      'Host: shop.example',
      'Idempotency-Key: k',
      'X-Tenant: acme',
      'X_Tenant: other',
      'X.Tenant: other',
      'Oncegate-Epoch: 999',
      'Oncegate_Attempt: forged',
      'Oncegate~Epoch: 998',
      'oncegate-anything: x',
      'X-Forwarded-For: 6.6.6.6',
      'X-Forwarded-Proto: gopher',
      'X_Forwarded_Host: evil',
      'X.Forwarded-Host: evil',
      'Forwarded: for=6.6.6.6',
      'X-Request-Id: mine',
      'Accept-Encoding: gzip',
      'Connection: close, X-Hop',
      'X-Hop: 1',
      'Keep-Alive: 5',
      'TE: trailers',
      'X-Own: one',
      'X-Own: two',
      'x_own: three',
      'Authorization: Bearer x',
      'Cookie: a=1',
      'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      'Content-Type: text/plain',
      'Content-Length: 2',
      '',
      'ok',
    ].join('\r\n'),
  );
  t.match(answer, /^HTTP\/1\.1 201 /);
  t.match(answer, /X-Request-Id: mine\r\n/);
  const got = upstream.executions[0] as Execution;
  t.same(names(got).sort(), [
    'accept-encoding',
    'authorization',
    'connection',
    'content-length',
    'content-type',
    'cookie',
    'host',
    'idempotency-key',
    'oncegate-attempt',
    'oncegate-epoch',
    'traceparent',
    'x-forwarded-for',
    'x-forwarded-host',
    'x-forwarded-proto',
    'x-own',
    'x-own',
    'x-request-id',
    'x-tenant',
    'x_own',
  ]);
  const { headers } = got;
  t.match(headers, {
    host: 'shop.example',
    'idempotency-key': 'k',
    'x-tenant': 'acme',
    'x-forwarded-for': '127.0.0.1',
    'x-forwarded-proto': 'http',
    'x-forwarded-host': 'shop.example',
    'x-request-id': 'mine',
    'accept-encoding': 'identity',
    'x-own': 'one, two',
  });
  t.match(headers['oncegate-epoch'], /^\d+$/);
  t.not(headers['oncegate-epoch'], '999');
  t.match(headers['oncegate-attempt'], /^[0-9a-f-]{36}$/);
});

t.test('several upstreams by route, each with its own Host', async (t) => {
  const main = await testUpstream(t);
  const orders = await testUpstream(t);
  const { dataUrl } = await sidecar(t, {
    upstream: main.url,
    config: `
routes:
  - { path: /orders/*, upstream: { url: '${orders.url}', host: upstream } }
  - { path: /named, upstream: { host: upstream } }`,
  });
  const headers = { Host: 'shop.example' };
  for (const path of ['/a', '/orders', '/orders/1', '/named', '/ordersx']) {
    t.equal((await ask(dataUrl + path, { key: 'k', headers })).status, 201);
  }
  t.equal((await ask(`${dataUrl}/orders/2`, { method: 'GET', headers })).status, 201);
  const seen = (upstream: typeof main) => upstream.executions.map((one) => [one.url, one.headers.host]);
  const own = (upstream: typeof main) => new URL(upstream.url).host;
  t.same(seen(main), [
    ['/a', 'shop.example'],
    ['/named', own(main)],
    ['/ordersx', 'shop.example'],
  ]);
  t.same(seen(orders), [
    ['/orders', own(orders)],
    ['/orders/1', own(orders)],
    ['/orders/2', own(orders)],
  ]);
  t.equal(
    (await ask(`${dataUrl}/orders/1`, { key: 'k', headers })).headers['idempotency-status'],
    'replayed',
  );
});

t.test("an id of the client's that could do harm is replaced", async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, { upstream: upstream.url });
  for (const id of ['a b', 'x'.repeat(129), '"', '<b>', 'a,b']) {
    const answer = await ask(`${dataUrl}/a`, { key: 'k', headers: { 'X-Request-Id': id } });
    t.match(answer.headers['x-request-id'], /^[0-9a-f-]{36}$/, id.slice(0, 9));
  }
});
