import t from 'tap';
import { ask } from '../helpers/client.ts';
import { countRecords } from '../helpers/records.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { testUpstream } from '../helpers/upstream.ts';
import { exchange } from '../proxy/pass-through-server.ts';

/** Some upstreams read every character of a header name that is neither letter nor digit as one and the same. */

const punctuation = "_.!#$%&'*+^`|~".split('');
const variants = (name: string) => punctuation.map((mark) => name.replaceAll('-', mark));
const config = `
tenant: { from: { header: X-Tenant } }
routes:
  - { path: /off, mode: off }
  - { path: /optional, requireKey: false }
  - { path: /renamed, forwardKey: { rename: X-Original-Key } }`;

t.test('the key under a name with other punctuation gets 400', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl, databaseUrl } = await sidecar(t, { upstream: upstream.url, config });
  const tenant = { 'X-Tenant': 'acme' };
  for (const name of [...variants('Idempotency-Key'), ...variants('x-idempotency-key')]) {
    for (const path of ['/a', '/optional']) {
      const alone = await ask(dataUrl + path, { headers: { ...tenant, [name]: 'k' }, body: '{}' });
      t.match(alone.body.toString(), '"code":"key_invalid"', `${path} ${name}`);
      t.equal(alone.status, 400);
    }
    const beside = await ask(`${dataUrl}/a`, { key: 'k', headers: { ...tenant, [name]: 'k' }, body: '{}' });
    t.match(
      beside.body.toString(),
      /"code":"key_invalid".*punctuation|punctuation.*"code":"key_invalid"/,
      name,
    );
  }
  t.equal(upstream.executions.length, 0);
  t.equal(await countRecords(databaseUrl), 0);
});

t.test('other names that we set, trust or remove do not reach the upstream in a variant', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, { upstream: upstream.url, config });
  const ours = ['X-Tenant', 'X-Forwarded-For', 'X-Forwarded-Anything', 'Oncegate-Attempt', 'X-Request-Id'];
  const forged: Record<string, string> = {};
  for (const name of [...ours, 'Transfer-Encoding', 'Content-Length'].flatMap(variants))
    forged[name] = 'forged';
  const headers = { 'X-Tenant': 'acme', ...forged, 'X.Own': 'mine', X_Own: 'mine' };
  for (const [method, path] of [
    ['POST', '/a'],
    ['POST', '/off'],
    ['GET', '/a'],
  ] as const) {
    const answer = await ask(dataUrl + path, { method, key: path, headers });
    t.equal(answer.status, 201, `${method} ${path}`);
    const got = upstream.executions.at(-1);
    t.same(
      got?.rawHeaders.filter((_, i, all) => all[i + 1] === 'forged'),
      [],
      `${method} ${path}`,
    );
    t.match(got?.headers, { 'x-tenant': 'acme', 'x.own': 'mine', x_own: 'mine' });
  }
  const content = Object.fromEntries(
    ['Content-Type', 'Content-Encoding', 'If-Match', 'X-Original-Key']
      .flatMap(variants)
      .map((name) => [name, 'forged']),
  );
  await ask(`${dataUrl}/renamed`, { key: 'k', headers: { 'X-Tenant': 'acme', ...content }, body: '{}' });
  const got = upstream.executions.at(-1);
  t.equal(got?.url, '/renamed');
  t.notOk(got?.rawHeaders.includes('forged'), 'nor what would differ from the fingerprint');
});

t.test('credentials under another name are credentials: nobody else gets the answer', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, { upstream: upstream.url });
  for (const name of [...variants('X-Api-Key'), 'Authorization', 'COOKIE']) {
    const first = await ask(`${dataUrl}/a`, { key: `k-${name}`, headers: { [name]: 'alice' }, body: '{}' });
    t.equal(first.status, 201, name);
    const other = await ask(`${dataUrl}/a`, { key: `k-${name}`, body: '{}' });
    t.match(other.body.toString(), '"code":"caller_differs"', name);
  }
});

t.test('request trailers count for nothing and are not forwarded', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, { upstream: upstream.url, config });
  const port = Number(new URL(dataUrl).port);
  const body =
    'Connection: close\r\nTrailer: Idempotency-Key, X-Tenant\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nIdempotency-Key: trailing\r\nX-Tenant: trailing\r\nX.Tenant: trailing\r\nX-Forwarded-For: trailing\r\n\r\n';
  const head = (path: string) => `POST ${path} HTTP/1.1\r\nHost: a\r\n`;
  const key = 'Idempotency-Key: k\r\n';
  const tenant = 'X-Tenant: acme\r\n';
  t.match(await exchange(t, port, `${head('/a')}${tenant}${body}`), '"code":"key_missing"');
  t.match(await exchange(t, port, `${head('/a')}${key}${body}`), '"code":"tenant_missing"');
  t.match(await exchange(t, port, `${head('/a')}${key}${tenant}${body}`), /^HTTP\/1\.1 201 /);
  t.match(await exchange(t, port, `${head('/off')}${tenant}${body}`), /^HTTP\/1\.1 201 /);
  t.equal(upstream.executions.length, 2);
  for (const { rawTrailers, rawHeaders } of upstream.executions) {
    t.same(rawTrailers, []);
    t.notOk(rawHeaders.some((text) => text.includes('trailing')));
  }
});

t.test('an answer cannot speak for us under a variant either', async (t) => {
  const forged: Record<string, string> = {};
  for (const name of ['Oncegate-Outcome', 'X-Request-Id'].flatMap(variants)) forged[name] = 'forged';
  const statuses = Object.fromEntries(variants('Idempotency-Status').map((name) => [name, 'forged']));
  const upstream = await testUpstream(t, (one, res) => {
    res.writeHead(201, one.url === '/off' ? forged : { ...forged, ...statuses }).end();
  });
  const { dataUrl } = await sidecar(t, { upstream: upstream.url, config });
  for (const path of ['/a', '/a', '/off']) {
    const answer = await ask(dataUrl + path, { key: 'k', headers: { 'X-Tenant': 'acme' } });
    t.equal(answer.status, 201);
    t.notOk(answer.rawHeaders.includes('forged'), path);
  }
});
