import dns from 'node:dns';
import { once } from 'node:events';
import net from 'node:net';
import t from 'tap';
import { send } from '../helpers/client.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { until } from '../helpers/until.ts';
import { testUpstream } from '../helpers/upstream.ts';
import { connect, seen } from '../proxy/pass-through-server.ts';

const both = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

async function hasIpv6(): Promise<boolean> {
  const server = net.createServer().listen(0, '::1');
  return await once(server, 'listening').then(
    () => {
      server.close();
      return true;
    },
    () => false,
  );
}

t.test('localhost of two addresses', { skip: !(await hasIpv6()) && 'no IPv6 here' }, async (t) => {
  // Most machines have both; this one may have one of them.
  const { lookup } = dns.promises;
  dns.promises.lookup = (async () => both) as unknown as typeof lookup;
  t.teardown(() => {
    dns.promises.lookup = lookup;
  });
  const upstream = await testUpstream(t);
  const running = await sidecar(t, {
    upstream: upstream.url,
    listen: 'localhost:0',
    config: 'drain: { delay: 0s, max: 5m }',
  });
  const { port } = new URL(running.dataUrl);
  const urls = [`http://127.0.0.1:${port}`, `http://[::1]:${port}`];

  await t.test('both are served, and one key is one key', async (t) => {
    const [first, second] = [await send(`${urls[0]}/a`, 'k'), await send(`${urls[1]}/a`, 'k')];
    t.equal(first.headers['idempotency-status'], 'executed');
    t.equal(second.headers['idempotency-status'], 'replayed');
  });

  await t.test('nothing behind a refused request runs on either', async (t) => {
    for (const host of ['127.0.0.1', '::1']) {
      const socket = await connect(t, Number(port), host);
      const refused =
        'POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n';
      const behind = 'POST /a HTTP/1.1\r\nHost: a\r\nIdempotency-Key: behind\r\nContent-Length: 0\r\n\r\n';
      socket.write(`${refused}0\r\n\r\n${behind}`);
      await seen(socket, (text) => text.startsWith('HTTP/1.1 400'));
      await until('closed', () => socket.destroyed || socket.readableEnded);
      t.equal(upstream.countOf('behind'), 0);
    }
  });

  await t.test('a drain answers what runs on both', async (t) => {
    const held = urls.map((url, at) => send(`${url}/a`, `held${at}`, { steer: { hold: true } }));
    const passing = urls.map((url) => send(`${url}/a`, 'get', { method: 'GET', steer: { hold: true } }));
    await until('they are there', () => upstream.countOf('get') === 2 && upstream.countOf('held1') === 1);
    const drained = running.drain(true);
    for (const host of ['127.0.0.1', '::1'])
      await until('no new connections', () =>
        once(net.connect(Number(port), host), 'connect').then(
          ([socket]) => (socket?.destroy(), false),
          () => true,
        ),
      );
    upstream.letGo();
    for (const answer of await Promise.all([...held, ...passing])) t.equal(answer.status, 201);
    await drained;
  });
});
