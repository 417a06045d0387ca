import { execFileSync } from 'node:child_process';
import type { TLSSocket } from 'node:tls';
import t, { type Test } from 'tap';
import { UpstreamClient, type UpstreamClientOptions } from '../../src/upstream/client.ts';
import { RawUpstream, scripts } from '../helpers/raw-upstream.ts';
import { send, target } from './send.ts';

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello';

/** Key and self-signed certificate in one PEM, made for this run. */
function certificate(names: string): string {
  const args = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-days',
    '2',
  ];
  args.push('-subj', '/CN=oncegate test', '-addext', `subjectAltName=${names}`, '-keyout', '-', '-out', '-');
  return execFileSync('openssl', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
}

const shop = certificate('DNS:shop.example,IP:127.0.0.1');
const localhost = certificate('DNS:localhost');

async function pair(t: Test, pem: string, host: string, options: UpstreamClientOptions) {
  const upstream = await RawUpstream.listen(scripts.answer(ok), {
    cert: pem,
    key: pem,
    ALPNProtocols: ['h2', 'http/1.1'],
  });
  const client = new UpstreamClient(target(`https://${host}:${upstream.port}`, 1), options);
  t.teardown(async () => {
    await client.destroy();
    await upstream.close();
  });
  return { upstream, client };
}

const host = (name: string) => ({ headers: ['Host', name] });

t.test('self-signed, trusted by nobody', async (t) => {
  const { upstream, client } = await pair(t, shop, '127.0.0.1', {});
  t.match(await send(client).ended, { kind: 'not_started', error: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' } });
  t.equal(upstream.bytes, 0);
});

t.test('for another host, even the one that the client names in Host', async (t) => {
  const { upstream, client } = await pair(t, shop, 'localhost', { ca: shop });
  for (const name of ['localhost', 'shop.example']) {
    const { ended } = send(client, host(name));
    t.match(await ended, { kind: 'not_started', error: { code: 'ERR_TLS_CERT_ALTNAME_INVALID' } }, name);
  }
  t.equal(upstream.bytes, 0);
});

t.test('for the configured name: one connection, whatever Host says', async (t) => {
  const { upstream, client } = await pair(t, localhost, 'localhost', { ca: [localhost] });
  for (const name of ['localhost', 'shop.example', 'a.example', '10.0.0.1']) {
    t.match(await send(client, host(name)).ended, { kind: 'answered' }, name);
  }
  t.equal(upstream.connections.length, 1);
  const socket = upstream.connections[0]?.socket as TLSSocket | undefined;
  t.match(socket, { servername: 'localhost', alpnProtocol: 'http/1.1' });
});

t.test('for the configured address: one connection, whatever Host says', async (t) => {
  const { upstream, client } = await pair(t, shop, '127.0.0.1', { ca: Buffer.from(shop) });
  for (const name of ['127.0.0.1', 'a.example', 'b.example']) {
    t.match(await send(client, host(name)).ended, { kind: 'answered' }, name);
  }
  t.equal(upstream.connections.length, 1);
  t.match(upstream.connections[0]?.socket, { servername: false }, 'an address is no server name');
});

t.test('no TLS there, or a reset in the handshake', async (t) => {
  for (const script of [scripts.answerEarly('HTTP/1.1 400 Bad Request\r\n\r\n'), scripts.resetAtOnce()]) {
    const upstream = await RawUpstream.listen(script);
    const client = new UpstreamClient(target(`https://127.0.0.1:${upstream.port}`));
    t.teardown(async () => {
      await client.destroy();
      await upstream.close();
    });
    t.match(await send(client).ended, { kind: 'not_started', error: Error });
    t.equal(upstream.lines.length, 0);
  }
});
