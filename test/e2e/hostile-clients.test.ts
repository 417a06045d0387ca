import { once } from 'node:events';
import net from 'node:net';
import t from 'tap';
import { ask } from '../helpers/client.ts';
import { RawUpstream } from '../helpers/raw-upstream.ts';
import { sidecar, sidecarProcess } from '../helpers/sidecar.ts';
import { until } from '../helpers/until.ts';
import { testUpstream } from '../helpers/upstream.ts';

/** One connection on which the test writes what it likes. */
async function connection(url: string) {
  const socket = net.connect(Number(new URL(url).port), '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  const heard: Buffer[] = [];
  socket.on('data', (chunk) => heard.push(chunk));
  return { socket, text: () => Buffer.concat(heard).toString('latin1'), closed: once(socket, 'close') };
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
const upgrade = (path: string) =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`;

t.test('a WebSocket asked for on the heels of another request does not end the process', async (t) => {
  const upstream = await testUpstream(t, () => {});
  const { dataUrl, opsUrl } = await sidecarProcess(t, { upstream: upstream.url });
  const { socket, closed } = await connection(dataUrl);
  socket.write(get('/a') + upgrade('/ws'));
  await closed;
  t.equal((await ask(`${opsUrl}/livez`, { method: 'GET' })).status, 200);
});

t.test('an upload that is cut while it is queued does not end the process', async (t) => {
  const upstream = await testUpstream(t, () => {});
  const { dataUrl, opsUrl } = await sidecarProcess(t, {
    upstream: upstream.url,
    config: 'upstream: { connections: 1 }',
  });
  const busy = await connection(dataUrl);
  busy.socket.write(get('/slow'));
  await upstream.received(1);
  const { socket, closed } = await connection(dataUrl);
  socket.write(`${get('/b')}PUT /c HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345`);
  // Its own answer shows that what came before it has been read.
  await ask(`${dataUrl}/never?`, { method: 'TRACE' });
  socket.resetAndDestroy();
  await closed;
  t.equal((await ask(`${opsUrl}/livez`, { method: 'GET' })).status, 200);
});

t.test('garbage behind a running request is not answered in its place', async (t) => {
  let finish: () => void = () => {};
  const upstream = await testUpstream(t, (_execution, res) => {
    finish = () => res.writeHead(201).end('ran');
  });
  const { dataUrl } = await sidecar(t, { upstream: upstream.url });
  const { socket, text, closed } = await connection(dataUrl);
  const head = 'POST /a HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n';
  socket.write(`${head}Idempotency-Key: a\r\nContent-Length: 2\r\n\r\n{}`);
  await upstream.received(1);
  socket.write(`${head}Idempotency-Key: b\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`);
  await closed;
  t.equal(text(), '', 'cut, and nothing claimed');
  finish();
  const retry = await until('the answer is stored', async () => {
    const answer = await ask(`${dataUrl}/a`, { key: 'a', body: '{}' });
    return answer.status === 201 && answer;
  });
  t.equal(retry.body.toString(), 'ran');
  t.equal(upstream.executions.length, 1);
});

t.test('what stands behind a declined upgrade is never read as a request', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, { upstream: upstream.url });
  const { socket, closed } = await connection(dataUrl);
  socket.write(
    'GET /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nPUT /b HTTP/1.1\r\n',
  );
  socket.write(get('/smuggled'));
  await closed;
  t.notOk(upstream.executions.some(({ url }) => url === '/smuggled'));
});

t.test('a drain cuts a WebSocket that is still being asked for', async (t) => {
  const upstream = await testUpstream(t);
  let arrived = () => {};
  const asked = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const hanging = await RawUpstream.listen({ requested: () => arrived() });
  t.teardown(() => hanging.close());
  const { dataUrl, drain } = await sidecar(t, {
    upstream: upstream.url,
    config: `
drain: { delay: 0s, max: 1s }
routes: [ { path: /ws, upstream: { url: "http://127.0.0.1:${hanging.port}" } } ]`,
  });
  const { socket, closed } = await connection(dataUrl);
  socket.write(upgrade('/ws'));
  await asked;
  await drain(true);
  await closed;
  t.pass('drained, though the upstream never answered');
});

t.test('parameters and escapes in a path do not slip past the policy of the path', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, {
    upstream: upstream.url,
    config:
      'defaults: { mode: off }\nroutes: [ { path: /v1/charges, mode: enforce }, { path: "/pay:capture", mode: enforce } ]',
  });
  const charges = ['/v1/charges', '/v1/charges;x=1', '/v1/charges%3Bx', '/v1;a/charges', '/v1/;a/charges'];
  for (const path of [...charges, '/pay:capture', '/pay%3Acapture', '/p%61y%3acapture']) {
    t.equal((await ask(dataUrl + path, { body: '{}' })).status, 400, path);
  }
  t.equal(upstream.executions.length, 0);
});
