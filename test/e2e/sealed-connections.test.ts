import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import t from 'tap';
import { ask } from '../helpers/client.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { testUpstream } from '../helpers/upstream.ts';
import { connect, exchange, seen } from '../proxy/pass-through-server.ts';

/** After a refusal of framing, what stands behind it on the same connection may be part of it: none of it runs. */

const config = `
defaults: { maxRequestBody: 1kb }
routes: [ { path: /off/*, mode: off } ]`;

const guarded = (key: string, path = '/behind') =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nIdempotency-Key: ${key}\r\nContent-Length: 2\r\n\r\n{}`;
const behind = `GET /behind HTTP/1.1\r\nHost: a\r\n\r\n${guarded('behind')}`;
const empty = 'Idempotency-Key: k\r\nContent-Length: 0\r\n\r\n';

const refused: readonly [what: string, status: number, code: string, request: string][] = [
  [
    'gzip, chunked',
    501,
    'not_supported',
    'POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
  ],
  ['two Hosts', 400, 'request_invalid', `POST /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n${empty}`],
  ['two Hosts, not guarded', 400, 'request_invalid', 'GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n'],
  [
    'HTTP/1.0 with Transfer-Encoding',
    400,
    'request_invalid',
    'POST /a HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  ],
  ['no Host', 400, 'request_invalid', `POST /a HTTP/1.1\r\n${empty}`],
  ['no Host, not guarded', 400, 'request_invalid', 'GET /a HTTP/1.1\r\n\r\n'],
  ['gRPC', 501, 'not_supported', `POST /a HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc\r\n${empty}`],
  ['ambiguous path', 400, 'request_invalid', `POST /a/../b HTTP/1.1\r\nHost: a\r\n${empty}`],
  ['ambiguous path, mode off', 400, 'request_invalid', `POST /off//b HTTP/1.1\r\nHost: a\r\n${empty}`],
  ['absolute target', 400, 'request_invalid', `POST http://b/a HTTP/1.1\r\nHost: a\r\n${empty}`],
  ['absolute target, not guarded', 400, 'request_invalid', 'GET http://b/a HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['TRACE', 501, 'not_supported', 'TRACE /a HTTP/1.1\r\nHost: a\r\n\r\n'],
  [
    'a body over the limit',
    413,
    'body_too_large',
    `POST /a HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 2000\r\n\r\n${'x'.repeat(2_000)}`,
  ],
];

const answersIn = (text: string) => text.split(/HTTP\/1\.1 \d/).length - 1;

t.test('requests behind a refused one, in the same packet', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, { upstream: upstream.url, config });
  const port = Number(new URL(dataUrl).port);
  for (const [what, status, code, request] of refused) {
    const answer = await exchange(t, port, request + behind);
    t.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `), what);
    t.match(answer, new RegExp(`"code":"${code}"`), what);
    t.match(answer, /\r\nConnection: close\r\n/i, what);
    t.match(answer, /application\/problem\+json/, what);
    t.equal(answersIn(answer), 1, `${what}: one answer`);
  }
  await ask(`${dataUrl}/fence`, { key: 'fence', body: '{}' });
  t.same(
    upstream.executions.map(({ url }) => url),
    ['/fence'],
    'none of them ran',
  );
});

t.test('a request that ran before the refused one is answered first', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, { upstream: upstream.url, config });
  const port = Number(new URL(dataUrl).port);
  for (const [what, status, , request] of refused) {
    const key = what.replaceAll(' ', '-');
    const answer = await exchange(t, port, guarded(key, '/before') + request + behind);
    t.match(answer, new RegExp(`^HTTP/1\\.1 201 [^]*HTTP/1\\.1 ${status} `), what);
    t.equal(answersIn(answer), 2, `${what}: two answers`);
  }
  await ask(`${dataUrl}/fence`, { key: 'fence', body: '{}' });
  t.notOk(upstream.executions.some(({ url }) => url === '/behind'));
});

t.test('garbage behind a refused request does not take its answer away', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, { upstream: upstream.url, config });
  const port = Number(new URL(dataUrl).port);
  for (const [what, status, , request] of refused) {
    const answer = await exchange(t, port, `${request}garbage\r\n\r\n`);
    t.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `), what);
    t.equal(answersIn(answer), 1, `${what}: one answer`);
  }
  t.equal(upstream.executions.length, 0);
});

t.test('requests that come while the body of a refused one is still awaited', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, { upstream: upstream.url, config });
  const socket = await connect(t, Number(new URL(dataUrl).port));
  const answer = seen(socket, (text) => text.includes('request_invalid'));
  socket.write('POST /a//b HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 2\r\n\r\n');
  t.match(await answer, /^HTTP\/1\.1 400 /);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.write(`{}${behind}`);
  await closed;
  await ask(`${dataUrl}/fence`, { key: 'fence', body: '{}' });
  t.same(
    upstream.executions.map(({ url }) => url),
    ['/fence'],
  );
});

t.test('a refusal that is not about framing keeps the connection', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, { upstream: upstream.url, config });
  const port = Number(new URL(dataUrl).port);
  const last = 'GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
  const keyless = 'POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n';
  const answer = await exchange(t, port, keyless + last);
  t.match(answer, /^HTTP\/1\.1 400 [^]*"code":"key_missing"[^]*HTTP\/1\.1 201 /);
});

t.test('a head that is whole only after its time has run out is not taken', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, { upstream: upstream.url, config });
  const servers: Server[] = [];
  const note = (message: unknown) => void servers.push((message as { server: Server }).server);
  subscribe('http.server.request.start', note);
  await ask(`${dataUrl}/a`, { method: 'GET' });
  unsubscribe('http.server.request.start', note);
  const [server] = servers as [Server];
  const accepted = once(server, 'connection');
  const socket = await connect(t, Number(new URL(dataUrl).port));
  const [ours] = (await accepted) as [Socket];
  const answer = seen(socket, (text) => text.includes('\r\n\r\n'));
  // As Node does once a minute has passed.
  server.emit('clientError', Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), ours);
  t.match(await answer, /^HTTP\/1\.1 408 /);
  const closed = once(ours, 'close');
  socket.write(guarded('late', '/late'));
  await closed;
  await ask(`${dataUrl}/fence`, { key: 'fence', body: '{}' });
  t.notOk(upstream.executions.some(({ url }) => url === '/late'));
});
