import t from 'tap';
import { ask, problemOf } from '../helpers/client.ts';
import { query } from '../helpers/postgres.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { type Execution, testUpstream } from '../helpers/upstream.ts';

const json = 'application/json';
const formType = 'application/x-www-form-urlencoded';

t.test('what one client sends in two ways is one request', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, {
    upstream: upstream.url,
    config: 'routes: [{ path: /ignoring, fingerprint: { ignore: [/nonce, /meta/at] } }]',
  });
  const rows: [
    path: string,
    first: [type: string, body: string],
    second: [type: string, body: string],
    status: number,
  ][] = [
    ['/a', [json, '{"a":1}'], [`${json}; charset=utf-8`, '{"a":1}'], 201],
    ['/a', [`${json};charset="UTF-8"`, '{"a":1}'], [json, '{"a":1}'], 201],
    ['/a', [json, '{"a":1}'], [`${json}; charset=iso-8859-1`, '{"a":1}'], 422],
    ['/a', [formType, 'a=1'], [`${formType}; charset=UTF-8`, 'a=1'], 201],
    ['/ignoring', [formType, 'a=1&nonce=1'], [formType, 'nonce=2&a=1'], 201],
    ['/ignoring', [formType, 'a=1&b[]=2&meta[at]=1'], [formType, 'a=1&b[]=2&meta[at]=2'], 201],
    ['/ignoring', [formType, 'a=1&nonce=1'], [formType, 'a=2&nonce=1'], 422],
    ['/a', [formType, 'a=1&nonce=1'], [formType, 'a=1&nonce=2'], 422],
  ];
  for (const [i, [path, first, second, status]] of rows.entries()) {
    const send = ([type, body]: [string, string]) =>
      ask(dataUrl + path, { key: `k${i}`, headers: { 'Content-Type': type }, body });
    t.equal((await send(first)).status, 201);
    t.equal((await send(second)).status, status, `${first.join(' ')} and ${second.join(' ')}`);
  }
  t.equal(upstream.executions.length, rows.length, 'each ran once');
});

t.test('Digest: the first try has no body, the next one has, under one key', async (t) => {
  const respond = ({ headers }: Execution) => (headers.authorization === undefined ? 401 : 201);
  const upstream = await testUpstream(t, (execution, res) =>
    res.writeHead(respond(execution), { 'WWW-Authenticate': 'Digest realm="a", nonce="b"' }).end('answer'),
  );
  const { dataUrl } = await sidecar(t, {
    upstream: upstream.url,
    config: 'routes: [{ path: /407, outcomes: { preset: payments, 401: store, 407: release } }]',
  });
  const charge = (body: string, headers: Record<string, string> = {}) =>
    ask(`${dataUrl}/a`, { key: 'k', body, headers: { 'Content-Type': json, ...headers } });
  const digest = { Authorization: 'Digest username="me", response="1"' };
  t.equal((await charge('')).headers['idempotency-status'], 'released');
  t.equal((await charge('{"a":1}')).headers['idempotency-status'], 'released', 'still without credentials');
  t.equal((await charge('{"a":2}', digest)).headers['idempotency-status'], 'executed');
  t.equal(upstream.executions.at(-1)?.body.toString(), '{"a":2}');
  t.equal((await charge('{"a":2}', digest)).headers['idempotency-status'], 'replayed');
  t.equal(
    problemOf(await charge('{"a":1}', digest)).code,
    'key_reused',
    'the record is that of the last request',
  );
  t.equal(problemOf(await charge('', digest)).code, 'key_reused');
  t.equal(upstream.executions.length, 3);
  const stored = (body: string) => ask(`${dataUrl}/407`, { key: 'k', body });
  t.equal((await stored('')).headers['idempotency-status'], 'executed', 'a policy that stores a 401');
  t.equal(problemOf(await stored('{"a":1}')).code, 'key_reused');
});

t.test('any other release is for the same request only', async (t) => {
  const upstream = await testUpstream(t, (_, res) => res.writeHead(429).end());
  const { dataUrl } = await sidecar(t, { upstream: upstream.url });
  const charge = (body: string) => ask(dataUrl, { key: 'k', body });
  t.equal((await charge('{"a":1}')).headers['idempotency-status'], 'released');
  t.equal(problemOf(await charge('{"a":2}')).code, 'key_reused');
  t.equal((await charge('{"a":1}')).headers['idempotency-status'], 'released');
  t.equal(upstream.executions.length, 2);
});

t.test('a record of an earlier rule: identical bytes are the same request', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl, databaseUrl } = await sidecar(t, { upstream: upstream.url });
  const charge = (body: string) => ask(dataUrl, { key: 'k', body });
  t.equal((await charge('{"a":1,"b":2}')).status, 201);
  const digest = `decode(repeat('00', 32), 'hex')`;
  await query(
    databaseUrl,
    `UPDATE oncegate.record SET fingerprint_rule = 'v2:canonical', fingerprint = ${digest}`,
  );
  t.equal((await charge('{"a":1,"b":2}')).headers['idempotency-status'], 'replayed');
  t.equal(problemOf(await charge('{"b":2,"a":1}')).code, 'key_reused');
});

t.test('gRPC-web is plain HTTP/1.1: guarded and passed through as any other', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, {
    upstream: upstream.url,
    config: 'routes: [{ path: /off, mode: off }]',
  });
  const frame = Buffer.from([0, 0, 0, 0, 1, 0xff]);
  for (const suffix of ['-web', '-web+proto', '-web-text', '-web-text+proto; a=b', '-Web+JSON']) {
    const send = (path: string) =>
      ask(dataUrl + path, {
        key: suffix.slice(0, 9) + suffix.length,
        headers: { 'Content-Type': `application/grpc${suffix}` },
        body: frame,
      });
    t.equal((await send('/a')).headers['idempotency-status'], 'executed', suffix);
    t.same(upstream.executions.at(-1)?.body, frame);
    t.equal((await send('/a')).headers['idempotency-status'], 'replayed', suffix);
    t.equal((await send('/off')).status, 201, suffix);
  }
  for (const suffix of ['', '+proto', '; a=b', '-webs', '-other']) {
    const answer = await ask(dataUrl, {
      key: 'g',
      headers: { 'Content-Type': `application/grpc${suffix}` },
      body: frame,
    });
    t.equal(problemOf(answer).code, 'not_supported', suffix);
  }
});
