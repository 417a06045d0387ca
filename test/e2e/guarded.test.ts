import { randomUUID } from 'node:crypto';
import t from 'tap';
import { requestDone } from '../../src/events.ts';
import { type Answer, ask, problemOf, send } from '../helpers/client.ts';
import { query } from '../helpers/postgres.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { testUpstream } from '../helpers/upstream.ts';

t.test('a first request runs, its retry is a replay, byte for byte', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, { upstream: upstream.url });
  const url = `${dataUrl}/charges?currency=eur`;
  const body = '{"amount":12345678901234567890,"to":"x"}';

  const first = await ask(url, { key: 'k', body });
  t.equal(first.status, 201);
  t.equal(first.headers['idempotency-status'], 'executed');
  t.match(first.headers['idempotency-expires'], / GMT$/);
  t.equal(upstream.executions[0]?.body.toString(), body, 'the upstream got the bytes that were sent');
  t.equal(upstream.executions[0]?.url, '/charges?currency=eur');

  const retry = await ask(url, { key: 'k', body });
  t.equal(retry.status, 201);
  t.equal(retry.headers['idempotency-status'], 'replayed');
  t.equal(retry.headers['idempotent-replayed'], 'true');
  t.same(retry.body, first.body);
  t.equal(retry.headers['location'], first.headers['location']);
  t.equal(retry.headers['content-type'], first.headers['content-type']);

  const reordered = await ask(url, {
    key: '"k"',
    body: ' { "to" : "\\u0078", "amount" : 12345678901234567890 } ',
  });
  t.equal(reordered.headers['idempotency-status'], 'replayed', 'members may come in another order');
  t.same(reordered.body, first.body);

  const other = await ask(url, { key: 'k', body: body.replace('890', '891') });
  t.equal(other.status, 422);
  t.equal(problemOf(other).code, 'key_reused');
  t.notMatch(other.body.toString(), /12345/, 'nothing of the stored request is shown');
  t.equal(upstream.countOf('k'), 1);
});

t.test('a binary answer and repeated headers replay, Set-Cookie does not', async (t) => {
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
  const upstream = await testUpstream(t, (_execution, res) => {
    res.writeHead(200, [
      ['Content-Type', 'application/octet-stream'],
      ['X-Many', 'one'],
      ['X-Many', 'two'],
      ['Set-Cookie', 'session=1'],
      ['Set-Cookie', 'other=2'],
      ['Oncegate-Outcome', 'executed'],
    ]);
    res.end(bytes);
  });
  const { dataUrl } = await sidecar(t, { upstream: upstream.url });
  const first = await ask(`${dataUrl}/a`, { key: 'k', body: '{}' });
  const retry = await ask(`${dataUrl}/a`, { key: 'k', body: '{}' });
  t.same(first.headers['set-cookie'], ['session=1', 'other=2'], 'the first client gets its cookies');
  t.equal(first.headers['oncegate-outcome'], undefined);
  t.equal(retry.headers['set-cookie'], undefined);
  t.equal(retry.headers['x-many'], 'one, two');
  t.same(first.body, bytes);
  t.same(retry.body, bytes);
});

t.test('the first answer carries the Date of the upstream, a replay its own', async (t) => {
  const longAgo = 'Wed, 01 Jan 2020 00:00:00 GMT';
  const upstream = await testUpstream(t);
  const { dataUrl, databaseUrl } = await sidecar(t, { upstream: upstream.url });
  const began = Date.now() - 1_000;
  const isNow = ({ headers }: Answer, about: string) => {
    const ms = Date.parse(headers['date'] as string);
    t.ok(ms >= began && ms <= Date.now(), `${about}: ${headers['date']}`);
  };
  const steer = { headers: { Date: longAgo, Expires: longAgo } };
  const first = await send(`${dataUrl}/a`, 'k', { steer });
  t.equal(first.headers['date'], longAgo, 'as it came');
  const retry = await send(`${dataUrl}/a`, 'k');
  t.same([retry.headers['idempotency-status'], retry.headers['expires']], ['replayed', longAgo]);
  isNow(retry, 'AWS clients set their clocks by it');

  // As versions before this one stored it.
  const stored = Buffer.from(`\x01Date\0${longAgo}\0X-Old\x001`).toString('hex');
  await send(`${dataUrl}/a`, 'old');
  await query(databaseUrl, `UPDATE oncegate.record SET headers = '\\x${stored}' WHERE key = 'old'`);
  const old = await send(`${dataUrl}/a`, 'old');
  t.same([old.headers['idempotency-status'], old.headers['x-old']], ['replayed', '1']);
  isNow(old, 'also where one was stored');
});

t.test('a client that leaves changes nothing: the upstream finishes and the retry is a replay', async (t) => {
  let finish: () => void = () => {};
  const upstream = await testUpstream(t, ({ method }, res) => {
    if (method === 'GET') res.end();
    else finish = () => res.writeHead(201).end('done');
  });
  const { dataUrl } = await sidecar(t, { upstream: upstream.url });
  const outcome = new Promise((resolve) => {
    t.teardown(requestDone.subscribe((done) => resolve(done.outcome)));
  });
  const leaving = new AbortController();
  const left = ask(`${dataUrl}/a`, { key: 'k', body: '{}', signal: leaving.signal });
  await upstream.received(1);
  leaving.abort();
  await t.rejects(left);
  // By then the sidecar has surely seen it go.
  for (let i = 0; i < 5; i += 1) await ask(dataUrl, { method: 'GET' });
  finish();
  t.equal(await outcome, 'store');
  const retry = await ask(`${dataUrl}/a`, { key: 'k', body: '{}' });
  t.equal(retry.status, 201);
  t.equal(retry.headers['idempotency-status'], 'replayed');
  t.equal(retry.body.toString(), 'done');
  t.equal(upstream.countOf('k'), 1);
});

t.test('duplicates in flight wait for the first answer; with no wait they get 409 or 202', async (t) => {
  const release: (() => void)[] = [];
  const upstream = await testUpstream(t, (_execution, res) => {
    release.push(() => res.writeHead(201).end(randomUUID()));
  });
  const { dataUrl } = await sidecar(t, {
    upstream: upstream.url,
    config: `
routes:
  - { path: /at-once, inFlight: { wait: 0s } }
  - { path: /accepted, inFlight: { wait: 0s, answer: 202 } }`,
  });
  const waiting = Array.from({ length: 10 }, () => ask(`${dataUrl}/wait`, { key: 'k', body: '{}' }));
  await upstream.received(1);
  release[0]?.();
  const answers = await Promise.all(waiting);
  t.same(new Set(answers.map((answer) => answer.status)), new Set([201]));
  t.equal(new Set(answers.map((answer) => answer.body.toString())).size, 1);
  t.equal(answers.filter((answer) => answer.headers['idempotency-status'] === 'executed').length, 1);

  for (const [path, status] of [
    ['/at-once', 409],
    ['/accepted', 202],
  ] as const) {
    const first = ask(dataUrl + path, { key: path, body: '{}' });
    await upstream.received(upstream.executions.length + 1);
    const second = await ask(dataUrl + path, { key: path, body: '{}' });
    t.equal(second.status, status);
    t.equal(problemOf(second).code, 'in_progress');
    t.equal(second.headers['retry-after'], '1');
    t.equal(second.headers['idempotency-status'], 'in_progress');
    release.at(-1)?.();
    t.equal((await first).status, 201);
  }
  t.equal(upstream.executions.length, 3);
});

t.test('an answer too large to keep is passed on whole, and never runs again', async (t) => {
  const large = Buffer.alloc(3_000_000, 'x');
  const upstream = await testUpstream(t, (_execution, res) => res.writeHead(200).end(large));
  const { dataUrl } = await sidecar(t, {
    upstream: upstream.url,
    config: 'defaults: { maxStoredBody: 100kb }',
  });
  const first = await ask(`${dataUrl}/a`, { key: 'k', body: '{}' });
  t.equal(first.status, 200);
  t.equal(first.headers['idempotency-status'], 'executed');
  t.ok(first.body.equals(large));
  const retry = await ask(`${dataUrl}/a`, { key: 'k', body: '{}' });
  t.equal(retry.status, 409);
  t.equal(problemOf(retry).code, 'response_not_retained');
  t.equal(upstream.countOf('k'), 1);
});

t.test('tenants do not see each other, and keys count per endpoint', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, {
    upstream: upstream.url,
    config: 'tenant: { from: { header: X-Tenant } }',
  });
  const as = (tenant: string, path = '/a', body = '{}') =>
    ask(dataUrl + path, { key: 'k', body, headers: { 'X-Tenant': tenant } });
  const a = await as('a');
  const b = await as('b', '/a', '{"other":true}');
  t.same([a.status, b.status], [201, 201], 'the same key with another body is no conflict');
  t.notSame(a.body, b.body);
  t.equal((await as('a', '/b')).headers['idempotency-status'], 'executed', 'another path is another key');
  const none = await ask(`${dataUrl}/a`, { key: 'k', body: '{}' });
  t.equal(none.status, 401);
  t.equal(problemOf(none).code, 'tenant_missing');
  const twice = await ask(`${dataUrl}/a`, { key: 'k', body: '{}', headers: { 'X-Tenant': ['a', 'b'] } });
  t.equal(twice.status, 401);
});
