import { once } from 'node:events';
import { METHODS } from 'node:http';
import net from 'node:net';
import t from 'tap';
import { sidecar } from '../helpers/sidecar.ts';
import { until } from '../helpers/until.ts';
import { testUpstream } from '../helpers/upstream.ts';
import { connect, exchange, seen } from '../proxy/pass-through-server.ts';

/** Whatever is refused is refused in our words: never in those of Node.js or Fastify. */

const key = 'Idempotency-Key: k\r\nContent-Length: 0\r\n';
const refused: readonly [what: string, status: number, code: string, request: string][] = [
  ['HTTP/2.0', 505, 'not_supported', 'GET /a HTTP/2.0\r\nHost: a\r\n\r\n'],
  ['HTTP/2.0, guarded', 505, 'not_supported', `POST /a HTTP/2.0\r\nHost: a\r\n${key}\r\n`],
  ['HTTP/0.9', 505, 'not_supported', 'GET /a HTTP/0.9\r\nHost: a\r\n\r\n'],
  ['HTTP/0.9 without version', 505, 'not_supported', 'GET /a\r\n\r\n'],
  ['HTTP/3.0', 400, 'request_invalid', 'GET /a HTTP/3.0\r\nHost: a\r\n\r\n'],
  ['CONNECT', 501, 'not_supported', 'CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n'],
  [
    'an expectation',
    417,
    'not_supported',
    'PUT /a HTTP/1.1\r\nHost: a\r\nExpect: tea\r\nContent-Length: 0\r\n\r\n',
  ],
  [
    'an expectation, guarded',
    417,
    'not_supported',
    `POST /a HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n${key}\r\n`,
  ],
  ['a long target', 431, 'request_invalid', `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`],
  ['a method of nobody', 400, 'request_invalid', 'BREW /a HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['overlong slash', 400, 'request_invalid', `POST /a%E0%80%AFb HTTP/1.1\r\nHost: a\r\n${key}\r\n`],
  [
    'overlong slash, four bytes',
    400,
    'request_invalid',
    `POST /a%F0%80%80%AFb HTTP/1.1\r\nHost: a\r\n${key}\r\n`,
  ],
  ['overlong slash, raw', 400, 'request_invalid', `POST /a\xe0\x80\xafb HTTP/1.1\r\nHost: a\r\n${key}\r\n`],
  ['all of the server', 400, 'request_invalid', 'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n'],
];

t.test('what is refused is refused in our words', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, { upstream: upstream.url });
  const port = Number(new URL(dataUrl).port);
  for (const [what, status, code, request] of refused) {
    const answer = await exchange(t, port, request);
    t.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `), what);
    t.match(answer, /\r\nContent-Type: application\/problem\+json\r\n/i, what);
    t.match(answer, new RegExp(`"code":"${code}"`), what);
    t.match(answer, /\r\nConnection: close\r\n/i, what);
  }
  t.equal(upstream.executions.length, 0);
});

t.test('what another server would refuse passes through', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, { upstream: upstream.url });
  const port = Number(new URL(dataUrl).port);
  const unguarded = METHODS.filter((method) => !['CONNECT', 'TRACE', 'POST', 'PATCH'].includes(method));
  const requests = [
    ...unguarded.map((method) => `${method} /a HTTP/1.1\r\nContent-Length: 0\r\n`),
    'GET /% HTTP/1.1\r\n',
    'GET /a%E0%80%AF HTTP/1.1\r\n',
    `GET /${'x/'.repeat(4_000)} HTTP/1.1\r\n`,
    'PUT /a HTTP/1.1\r\nContent-Type: of/nobody\r\nContent-Length: 0\r\n',
    'GET /a HTTP/1.0\r\nExpect: tea\r\n',
  ];
  for (const request of requests) {
    const answer = await exchange(t, port, `${request}Host: a\r\nConnection: close\r\n\r\n`);
    t.match(answer, /^HTTP\/1\.1 201 /, request.slice(0, 40));
  }
});

t.test('a request that comes while the process stops is refused in our words', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl, drain } = await sidecar(t, { upstream: upstream.url });
  const port = Number(new URL(dataUrl).port);
  const held = `X-Steer: ${JSON.stringify({ hold: true })}\r\n`;
  const running = await connect(t, port);
  running.write(`GET /running HTTP/1.1\r\nHost: a\r\n${held}\r\n`);
  const kinds = [
    'GET /b HTTP/1.1\r\nHost: a\r\n',
    `POST /b HTTP/1.1\r\nHost: a\r\n${key}`,
    'GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n',
  ];
  const kept = await Promise.all(
    kinds.map(async (begun) => {
      const socket = await connect(t, port);
      const first = seen(socket, (text) => text.includes('"ran"'));
      socket.write(`GET /first HTTP/1.1\r\nHost: a\r\n\r\n${begun}`);
      await first;
      return socket;
    }),
  );
  await upstream.received(1 + kinds.length);
  const drained = drain(true);
  await until('no new connections', async () => {
    const socket = net.connect(port, '127.0.0.1');
    const isRefused = await once(socket, 'connect').then(
      () => false,
      () => true,
    );
    socket.destroy();
    return isRefused;
  });
  for (const socket of kept) {
    const answer = seen(socket, (text) => text.includes('"code"'));
    socket.write('\r\n');
    const text = await answer;
    t.match(text, /^HTTP\/1\.1 503 [^]*application\/problem\+json[^]*"code":"overloaded"/);
    t.match(text, /\r\nConnection: close\r\n/i);
  }
  const last = seen(running, (text) => text.includes('"ran"'));
  upstream.letGo();
  t.match(await last, /^HTTP\/1\.1 201 /);
  await drained;
  t.notOk(upstream.executions.some(({ url }) => url === '/b' || url === '/ws'));
});
