import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { sidecar } from '../helpers/sidecar.ts';
import { testUpstream } from '../helpers/upstream.ts';
import { closedPort } from '../proxy/pass-through-server.ts';
import { inProcess } from './in-process.ts';

t.test('a sidecar that serves', async (t) => {
  const upstream = await testUpstream(t);
  const { opsUrl, drain } = await sidecar(t, { upstream: upstream.url });
  const address = new URL(opsUrl).host;
  const healthy = { code: 0, out: 'ok\n', err: '' };
  t.same(await inProcess(['healthcheck', '--ops-listen', address]), healthy);
  t.same(await inProcess(['healthcheck', '--ready'], { ONCEGATE_LISTEN_OPS: address }), healthy);
  const port = new URL(opsUrl).port;
  const file = join(t.testdir({ 'c.yaml': `listen: { ops: 0.0.0.0:${port} }` }), 'c.yaml');
  t.same(await inProcess(['healthcheck', '--config', file]), healthy, 'all addresses are asked on loopback');
  await drain(true);
  t.match(await inProcess(['healthcheck', '--ops-listen', address]), {
    code: 1,
    err: /nothing healthy at http:\/\/127\.0\.0\.1:\d+\/livez: .*Is oncegate running/,
  });
});

t.test('what is wrong is said', async (t) => {
  const nothing = `127.0.0.1:${await closedPort()}`;
  t.match(await inProcess(['healthcheck', '--ops-listen', nothing]), { code: 1, err: /ECONNREFUSED/ });
  const server = createServer((_, res) => res.writeHead(503).end('draining\n')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  t.same(await inProcess(['healthcheck', '--ready', '--ops-listen', address]), {
    code: 1,
    out: '',
    err: `oncegate: http://${address}/readyz answered 503: draining\n`,
  });
});
