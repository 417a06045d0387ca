import { connect } from 'node:net';
import t from 'tap';
import { ask, problemOf } from '../helpers/client.ts';
import { countRecords } from '../helpers/records.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { testUpstream } from '../helpers/upstream.ts';

/** Services that run a request as the method that such a header names. */
const headers = ['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override'];
const values = ['POST', 'post', ' PATCH ', 'GET, POST', '"POST"', 'POST;q=1'];

t.test('a request that an override header makes a guarded one is guarded', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl, databaseUrl } = await sidecar(t, { upstream: upstream.url });
  const names = [
    ...headers,
    'x-http-method-override',
    'X_HTTP_Method_Override',
    'X.HTTP.Method',
    'X!Method~Override',
  ];
  for (const name of names) {
    for (const value of values) {
      const without = await ask(`${dataUrl}/a`, { method: 'GET', headers: { [name]: value } });
      t.equal(problemOf(without).code, 'key_missing', `${name}: ${value}`);
    }
  }
  t.equal(upstream.executions.length, 0);
  t.equal(await countRecords(databaseUrl), 0);
  for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS']) {
    const override = { method, key: method, headers: { 'X-HTTP-Method-Override': 'POST' }, body: '{}' };
    t.equal((await ask(`${dataUrl}/a`, override)).headers['idempotency-status'], 'executed', method);
    t.equal((await ask(`${dataUrl}/a`, override)).headers['idempotency-status'], 'replayed', method);
    t.equal(upstream.countOf(method), 1, `${method}: ran once`);
    const sent = upstream.executions.at(-1);
    t.match(sent, { method, headers: { 'x-http-method-override': 'POST' } }, 'and goes on as it came');
    t.equal(sent?.body.toString(), '{}');
  }
});

t.test('its path is judged as that of a guarded one', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, {
    upstream: upstream.url,
    config: 'defaults: { mode: off }\nroutes: [{ path: /v1/charges, mode: enforce }]',
  });
  const { port } = new URL(dataUrl);
  const socket = connect(Number(port), '127.0.0.1');
  const request = 'GET //v1/charges HTTP/1.1\r\nHost: a\r\nX-HTTP-Method-Override: POST\r\n\r\n';
  socket.end(request);
  let text = '';
  for await (const chunk of socket) text += chunk;
  t.match(text, /^HTTP\/1\.1 400 .*request_invalid/s);
  t.equal(upstream.executions.length, 0);
});

t.test('what it names is part of the request', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, { upstream: upstream.url });
  const charge = (override: Record<string, string | string[]>) =>
    ask(`${dataUrl}/a`, { key: 'k', headers: override, body: '{}' });
  t.equal((await charge({ 'X-HTTP-Method-Override': 'PATCH' })).status, 201);
  t.equal((await charge({ 'x-http-method-override': 'PATCH' })).headers['idempotency-status'], 'replayed');
  const others: Record<string, string | string[]>[] = [
    {},
    { 'X-HTTP-Method-Override': 'DELETE' },
    { 'X-HTTP-Method-Override': 'TIDY' },
    { 'X-HTTP-Method-Override': '' },
    { 'X-HTTP-Method-Override': ['PATCH', 'DELETE'] },
    { 'X-HTTP-Method': 'PATCH' },
    { 'X-HTTP-Method-Override': 'PATCH', 'X-Method-Override': 'PATCH' },
  ];
  for (const other of others) {
    t.equal(problemOf(await charge(other)).code, 'key_reused', JSON.stringify(other));
  }
  t.equal(upstream.executions.length, 1);
});

t.test('one that names no guarded method passes through, header and all', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl, databaseUrl } = await sidecar(t, {
    upstream: upstream.url,
    config: 'routes: [{ path: /off, mode: off }]',
  });
  const passed: [path: string, value: string][] = [
    ['/a', 'DELETE'],
    ['/a', ''],
    ['/a', 'POSTER'],
    ['/a', 'HEAD, OPTIONS'],
    ['/off', 'POST'],
  ];
  for (const [path, value] of passed) {
    const answer = await ask(dataUrl + path, {
      method: 'GET',
      key: 'k',
      headers: { 'X-HTTP-Method-Override': value },
    });
    t.equal(answer.status, 201, `${path} ${value}`);
    t.equal(upstream.executions.at(-1)?.headers['x-http-method-override'], value);
  }
  t.equal(await countRecords(databaseUrl), 0);
  const trace = await ask(`${dataUrl}/a`, {
    method: 'TRACE',
    key: 'k',
    headers: { 'X-HTTP-Method-Override': 'POST' },
  });
  t.equal(problemOf(trace).code, 'not_supported', 'a TRACE is never carried');
  t.equal(upstream.executions.length, passed.length);
});

t.test('a WebSocket that names one is asked for as an ordinary guarded request', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, { upstream: upstream.url });
  const { port } = new URL(dataUrl);
  const socket = connect(Number(port), '127.0.0.1');
  socket.write(
    'GET /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nIdempotency-Key: k\r\nX-HTTP-Method: POST\r\n\r\n',
  );
  let text = '';
  for await (const chunk of socket) text += chunk;
  t.match(text, /^HTTP\/1\.1 201 .*Idempotency-Status: executed/s);
  t.equal(upstream.executions[0]?.headers.upgrade, undefined);
});

t.test('where the two methods have routes of their own, the stricter of both counts', async (t) => {
  const upstream = await testUpstream(t, (_, res) => res.writeHead(500).end('broken'));
  const { dataUrl } = await sidecar(t, {
    upstream: upstream.url,
    config: `
routes:
  - { path: /a, methods: [POST], outcomes: payments }
  - { path: /a, methods: [PUT], requireKey: false }`,
  });
  const put = (key?: string) =>
    ask(`${dataUrl}/a`, {
      method: 'PUT',
      ...(key === undefined ? {} : { key }),
      headers: { 'X-HTTP-Method-Override': 'POST' },
      body: '{}',
    });
  t.equal(problemOf(await put()).code, 'key_missing');
  t.equal((await put('k')).headers['idempotency-status'], 'unknown', 'a 500 of POST proves nothing');
  t.equal(problemOf(await put('k')).code, 'outcome_unknown');
  t.equal(upstream.countOf('k'), 1);
});
