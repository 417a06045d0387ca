import t from 'tap';
import { ask } from '../helpers/client.ts';
import { RawUpstream } from '../helpers/raw-upstream.ts';
import { countRecords } from '../helpers/records.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { until } from '../helpers/until.ts';
import { testUpstream } from '../helpers/upstream.ts';
import { connect, exchange, seen } from '../proxy/pass-through-server.ts';

/** Requests that two readers could take for two different ones, or that cannot be carried: nothing is forwarded. */

const config = `
routes:
  - { path: /off/*, mode: off }
  - { path: /optional, requireKey: false }`;

const guardedHead = 'Idempotency-Key: k\r\nConnection: close\r\n';

const refused: readonly [what: string, status: number, code: string, request: string][] = [
  ['two Hosts', 400, 'request_invalid', 'POST /a HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 0\r\n'],
  [
    'one Host twice',
    400,
    'request_invalid',
    'POST /a HTTP/1.1\r\nHost: a\r\nHost: a\r\nContent-Length: 0\r\n',
  ],
  ['two Hosts, passed through', 400, 'request_invalid', 'GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n'],
  [
    'HTTP/1.0 with Transfer-Encoding',
    400,
    'request_invalid',
    'POST /a HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n',
  ],
  [
    'gzip, chunked',
    501,
    'not_supported',
    'POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n',
  ],
  [
    'gRPC',
    501,
    'not_supported',
    'POST /a HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc+proto\r\nContent-Length: 0\r\n',
  ],
  [
    'length and chunked',
    400,
    '',
    'POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n',
  ],
  ['two lengths', 400, '', 'POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n'],
  ['no Host', 400, 'request_invalid', 'POST /a HTTP/1.1\r\nContent-Length: 0\r\n'],
  ['no Host, passed through', 400, 'request_invalid', 'GET /a HTTP/1.1\r\n'],
  [
    'a target that is no path',
    400,
    'request_invalid',
    'POST http://b/a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n',
  ],
];

const ambiguous = [
  '/a/../b',
  '/a/./b',
  '/a/..',
  '/a/%2e%2e/b',
  '/a/%2E./b',
  '/a%2fb',
  '/a%2Fb',
  '/a%5cb',
  '/a\\b',
  '//a',
  '/a//b',
  '/a/..;x/b',
  '/a/..%3Bx/b',
  '/a/;x/b',
  '/a%00',
  '/a%zz',
];

t.test('requests with two readings', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl, databaseUrl } = await sidecar(t, { upstream: upstream.url, config });
  const port = Number(new URL(dataUrl).port);
  for (const [what, status, code, head] of refused) {
    const answer = await exchange(t, port, `${head}${guardedHead}\r\n`);
    t.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `), what);
    if (code !== '') t.match(answer, new RegExp(`"code":"${code}"`), what);
  }
  for (const path of ambiguous) {
    for (const prefix of ['', '/off', '/optional/..']) {
      for (const method of ['POST', 'PATCH']) {
        const head = `${method} ${prefix}${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n`;
        const answer = await exchange(t, port, `${head}${guardedHead}\r\n`);
        t.match(answer, /^HTTP\/1\.1 400 [^]*"code":"request_invalid"/, `${method} ${prefix}${path}`);
      }
    }
  }
  t.equal(upstream.executions.length, 0, 'nothing was forwarded');
  t.equal(await countRecords(databaseUrl), 0, 'nothing was reserved');
});

t.test('what is not ambiguous passes', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, { upstream: upstream.url, config });
  const port = Number(new URL(dataUrl).port);
  const paths = [
    '/',
    '/a.b',
    '/.well-known/x',
    '/a%20b',
    '/%C3%A9',
    '/a/...',
    '/a?x=/../b',
    '/off/a',
    '/caf%E9',
  ];
  for (const path of paths) {
    const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n`;
    t.match(await exchange(t, port, `${head}${guardedHead}\r\n`), /^HTTP\/1\.1 201 /, path);
    t.equal(upstream.executions.at(-1)?.url, path, 'byte for byte');
  }
  const reading = await ask(`${dataUrl}/a%2fb`, { method: 'GET' });
  t.equal(reading.status, 201, 'a method that nobody guards may name what it likes');
});

t.test('more header fields than upstreams read', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl, databaseUrl } = await sidecar(t, { upstream: upstream.url, config });
  const port = Number(new URL(dataUrl).port);
  const request = (start: string, count: number) =>
    `${start} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n${'a:\r\n'.repeat(count - 4)}${guardedHead}\r\n`;
  for (const start of ['POST /a', 'GET /a', 'POST /off/a']) {
    for (const count of [981, 1_001, 2_001, 3_000]) {
      const answer = await exchange(t, port, request(start, count));
      t.match(answer, /^HTTP\/1\.1 431 [^]*"status":431[^]*"code":"request_invalid"/, `${start}, ${count}`);
    }
  }
  t.equal(upstream.executions.length, 0, 'nothing was forwarded');
  t.equal(await countRecords(databaseUrl), 0, 'nothing was reserved');
  for (const start of ['POST /a', 'GET /a', 'POST /off/a']) {
    t.match(await exchange(t, port, request(start, 980)), /^HTTP\/1\.1 201 /, start);
    const names = upstream.executions.at(-1)?.rawHeaders.filter((_, i) => i % 2 === 0) ?? [];
    const ours = names.filter((name) => /^(host|x-forwarded-.*|x-request-id|oncegate-.*)$/i.test(name));
    t.ok(ours.length >= 5);
    for (const name of ours) t.ok(names.indexOf(name) < names.indexOf('a'), `${start}: ${name} comes first`);
  }
});

t.test('bytes that are no request', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, { upstream: upstream.url });
  const port = Number(new URL(dataUrl).port);
  for (const bytes of [
    'garbage\r\n\r\n',
    '\x16\x03\x01\x02\x00',
    'POST /a HTTP/9.9\r\n\r\n',
    'POST / a HTTP/1.1\r\n\r\n',
  ]) {
    const answer = await exchange(t, port, bytes);
    t.match(answer, /^HTTP\/1\.1 400 [^]*X-Request-Id: [^]*"code":"request_invalid"/, JSON.stringify(bytes));
    const { detail, message, error } = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')));
    t.match({ message, error }, { message: detail, error: { code: 'request_invalid', message: detail } });
    t.match(detail, /Nothing was forwarded/);
  }
  const huge = await exchange(t, port, `POST /a HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`);
  t.match(huge, /^HTTP\/1\.1 431 /);
  t.equal(upstream.executions.length, 0);
});

t.test('a body that turns out malformed on its way: nobody says that nothing was forwarded', async (t) => {
  const upstream = await RawUpstream.listen({});
  t.teardown(() => upstream.close());
  const { dataUrl } = await sidecar(t, { upstream: upstream.origin });
  const socket = await connect(t, Number(new URL(dataUrl).port));
  const size = 0x20000;
  const head = 'PUT /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n';
  socket.write(`${head}${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`);
  await until('it has been forwarded so far', () => upstream.bytes >= size);
  const answer = seen(socket, (text) => text.endsWith('}'));
  socket.write('no size\r\n');
  const text = await answer;
  t.match(text, /^HTTP\/1\.1 400 [^]*"code":"request_invalid"/);
  t.notMatch(text, /Nothing was forwarded/);
  t.match(text, /a part may have been/);
});

t.test('garbage behind a request that runs does not answer for it', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, { upstream: upstream.url });
  const port = Number(new URL(dataUrl).port);
  const socket = await connect(t, port);
  const said: Buffer[] = [];
  socket.on('data', (chunk) => said.push(chunk));
  const steer = JSON.stringify({ hold: true });
  socket.write(
    `POST /a HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nX-Steer: ${steer}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`,
  );
  await upstream.received(1);
  socket.write('garbage\r\n\r\n');
  await new Promise((resolve) => socket.once('close', resolve));
  t.notMatch(Buffer.concat(said).toString(), 'Nothing was forwarded', 'for it was');
  upstream.letGo();
  const retry = await ask(`${dataUrl}/a`, { key: 'k', body: '{}' });
  t.equal(retry.headers['idempotency-status'], 'replayed');
  t.equal(upstream.countOf('k'), 1);
});

t.test('an offer to upgrade does not hide the body', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, { upstream: upstream.url });
  const port = Number(new URL(dataUrl).port);
  for (const protocol of ['h2c', 'websocket']) {
    const socket = await connect(t, port);
    const head = `POST /a HTTP/1.1\r\nHost: a\r\nIdempotency-Key: ${protocol}\r\nContent-Type: application/json\r\n`;
    const answer = seen(socket, (text) => text.includes('\r\n\r\n'));
    socket.write(
      `${head}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: ${protocol}\r\nHTTP2-Settings: AA\r\nContent-Length: 7\r\n\r\n{"a":1}`,
    );
    t.match(await answer, /^HTTP\/1\.1 201 /, protocol);
    t.equal(upstream.executions.at(-1)?.body.toString(), '{"a":1}');
    const other = await ask(`${dataUrl}/a`, { key: protocol, body: '{"a":2}' });
    t.equal(other.status, 422, 'it is part of the fingerprint');
  }
});

t.test('a client that asks before it sends its body is told to go on', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, { upstream: upstream.url });
  const socket = await connect(t, Number(new URL(dataUrl).port));
  const go = seen(socket, (text) => text.includes('\r\n\r\n'));
  socket.write(
    'POST /a HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n',
  );
  t.match(await go, /^HTTP\/1\.1 100 /);
  const answer = seen(socket, (text) => text.includes('\r\n\r\n'));
  socket.write('{}');
  t.match(await answer, /^HTTP\/1\.1 201 /);
  t.equal(upstream.executions[0]?.headers['expect'], undefined);
});
