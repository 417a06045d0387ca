import { execFileSync } from 'node:child_process';
import type { TLSSocket } from 'node:tls';
import t from 'tap';
import { ask, problemOf } from '../helpers/client.ts';
import { RawUpstream, scripts } from '../helpers/raw-upstream.ts';
import { closedPort, passThrough, target } from './pass-through-server.ts';

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
/** Those that a library might think safe to repeat, and one that it might not. */
const methods = ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'POST'];

t.test('an upstream that is not there', async (t) => {
  const { url } = await passThrough(t, [target(`http://127.0.0.1:${await closedPort()}`)]);
  const answer = await ask(`${url}/x`, { method: 'PUT', body: '{}' });
  t.match(answer, {
    status: 502,
    headers: {
      'content-type': 'application/problem+json',
      'x-request-id': 'request-1',
      'retry-after': '1',
      'cache-control': 'no-store',
    },
  });
  t.match(problemOf(answer), { code: 'upstream_unreachable', status: 502, retryable: true });
  t.notMatch(problemOf(answer).detail, /key/);
  const { message, error } = JSON.parse(answer.body.toString());
  t.same(
    { message, error },
    {
      message: problemOf(answer).detail,
      error: { type: 'api_error', code: 'upstream_unreachable', message: problemOf(answer).detail },
    },
  );
  t.equal((await ask(`${url}/x`, { method: 'HEAD' })).status, 502);
});

t.test("an upstream that is not there, in Stripe's form", async (t) => {
  const nowhere = target(`http://127.0.0.1:${await closedPort()}`);
  const { url } = await passThrough(t, [nowhere], () => nowhere, 'stripe');
  const answer = await ask(`${url}/x`, { method: 'GET' });
  t.match(answer, {
    status: 502,
    headers: { 'content-type': 'application/json', 'x-request-id': 'request-1', 'request-id': 'request-1' },
  });
  t.match(JSON.parse(answer.body.toString()), {
    error: { type: 'api_error', code: 'upstream_unreachable', message: /not sent/, request_id: 'request-1' },
  });
});

t.test('an upstream that does not answer in time', async (t) => {
  const upstream = await RawUpstream.listen(scripts.silent());
  t.teardown(() => upstream.close());
  const { url } = await passThrough(t, [target(upstream.origin, { timeoutMs: 200 })]);
  const answer = await ask(`${url}/slow`, { method: 'GET' });
  t.equal(answer.status, 504);
  t.equal(problemOf(answer).code, 'upstream_timeout');
  t.notMatch(problemOf(answer).detail, /key/);
  t.notOk(
    Object.keys(answer.headers).some((name) => name.includes('should-retry')),
    'no advice on retries',
  );
});

t.test('a request that waits too long for a connection is not sent, then or later', async (t) => {
  const upstream = await RawUpstream.listen({
    requested: ({ socket }, nth) => {
      if (nth === 0) release = () => socket.write(ok);
      else socket.write(ok);
    },
  });
  let release = () => {};
  t.teardown(() => upstream.close());
  const slow = target(upstream.origin, { connections: 1, timeoutMs: 5_000 });
  const hasty = { ...slow, timeoutMs: 100 };
  const { url } = await passThrough(t, [slow, hasty], (_method, path) => (path === '/hasty' ? hasty : slow));
  const first = ask(`${url}/first`, { method: 'POST' });
  while (upstream.lines.length === 0) await new Promise((resolve) => setImmediate(resolve));
  const queued = await ask(`${url}/hasty`, { method: 'POST' });
  t.equal(queued.status, 502);
  t.equal(problemOf(queued).code, 'upstream_unreachable');
  release();
  t.equal((await first).status, 200);
  t.equal((await ask(`${url}/next`, { method: 'POST' })).status, 200);
  t.strictSame(upstream.lines, ['POST /first HTTP/1.1', 'POST /next HTTP/1.1']);
  t.equal(upstream.connections.length, 1, 'and the connection was kept');
});

t.test('an upstream that breaks off, or says what is no answer', async (t) => {
  const broken = {
    reset: scripts.readThenReset(),
    close: scripts.readThenClose(),
    garbage: scripts.answer('not HTTP\r\n\r\n'),
    'two lengths': scripts.answer('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'),
    'status 600': scripts.answer('HTTP/1.1 600 What\r\nContent-Length: 0\r\n\r\n'),
    'status 099': scripts.answer('HTTP/1.1 099 What\r\nContent-Length: 0\r\n\r\n'),
    'unasked 101': scripts.answer(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n',
    ),
  };
  for (const [name, script] of Object.entries(broken)) {
    for (const method of methods) {
      const upstream = await RawUpstream.listen(script);
      t.teardown(() => upstream.close());
      const { url } = await passThrough(t, [target(upstream.origin)]);
      const answer = await ask(`${url}/x`, { method, body: method === 'POST' ? '{}' : '' });
      t.equal(answer.status, 502, `${name}, ${method}`);
      if (method !== 'HEAD') t.equal(problemOf(answer).code, 'upstream_failed');
      t.equal(upstream.lines.length, 1, 'sent once');
    }
  }
});

t.test('nothing is sent a second time', async (t) => {
  const unavailable = 'HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\nContent-Length: 2\r\n\r\nno';
  for (const method of methods) {
    const upstream = await RawUpstream.listen(scripts.answer(unavailable));
    t.teardown(() => upstream.close());
    const { url } = await passThrough(t, [target(upstream.origin)]);
    const answer = await ask(`${url}/x`, { method });
    t.match(answer, { status: 503, headers: { 'retry-after': '0' } }, method);
    t.equal(upstream.lines.length, 1, `503: ${method} was sent once`);
  }
  for (const method of methods) {
    const upstream = await RawUpstream.listen({
      // After the first answer the connection is kept, and reset by what comes next.
      requested: ({ socket }, nth) => void (nth === 0 ? socket.write(ok) : socket.resetAndDestroy()),
    });
    t.teardown(() => upstream.close());
    const { url } = await passThrough(t, [target(upstream.origin, { connections: 1 })]);
    await ask(`${url}/first`, { method: 'GET' });
    const answer = await ask(`${url}/second`, { method });
    t.equal(answer.status, 502);
    t.strictSame(
      upstream.lines,
      ['GET /first HTTP/1.1', `${method} /second HTTP/1.1`],
      `reset keep-alive: ${method} was sent once`,
    );
  }
});

/** Key and self-signed certificate in one PEM, made for this run. */
function certificate(names: string): string {
  const subject = ['-subj', '/CN=test', '-addext', `subjectAltName=${names}`];
  const made = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-days',
    '1',
  ];
  return execFileSync('openssl', [...made, '-keyout', '-', '-out', '-', ...subject], {
    stdio: ['ignore', 'pipe', 'ignore'],
    encoding: 'utf8',
  });
}

t.test('an https upstream must prove its name', async (t) => {
  const pem = certificate('DNS:other.example');
  const names: (string | false)[] = [];
  const upstream = await RawUpstream.listen(
    {
      ...scripts.answer(ok),
      connected: ({ socket }) => void names.push((socket as TLSSocket).servername ?? ''),
    },
    { key: pem, cert: pem },
  );
  t.teardown(() => upstream.close());
  for (const host of ['localhost', '127.0.0.1']) {
    const { url } = await passThrough(t, [target(`https://${host}:${upstream.port}`)]);
    // The client's Host is no proof either, though the certificate fits it.
    for (const claimed of ['a.example', 'other.example']) {
      const answer = await ask(`${url}/`, { method: 'GET', headers: { Host: claimed } });
      t.equal(answer.status, 502, `${host}, claimed ${claimed}`);
      t.equal(problemOf(answer).code, 'upstream_unreachable');
    }
  }
  t.equal(upstream.bytes, 0);
});
