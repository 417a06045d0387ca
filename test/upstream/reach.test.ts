import t from 'tap';
import { reach } from '../../src/upstream/reach.ts';
import { RawUpstream, scripts } from '../helpers/raw-upstream.ts';
import { until } from '../helpers/until.ts';
import { closedPort } from '../proxy/pass-through-server.ts';
import { selfSigned } from './certificate.ts';

const limitMs = 5_000;

t.test('http: connected, and nothing sent', async (t) => {
  const upstream = await RawUpstream.listen(scripts.silent());
  t.teardown(() => upstream.close());
  const seen = await reach(upstream.origin, limitMs);
  t.match(seen, { kind: 'reached', address: '127.0.0.1', certificate: null });
  await until('it saw us come', () => upstream.connections.length === 1);
  t.equal(upstream.bytes, 0);
});

t.test('https: the certificate, verified as for a request', async (t) => {
  const pem = selfSigned('DNS:localhost', 5);
  const upstream = await RawUpstream.listen(scripts.silent(), { cert: pem, key: pem });
  t.teardown(() => upstream.close());
  const origin = `https://localhost:${upstream.port}`;
  const seen = await reach(origin, limitMs, { ca: pem });
  t.match(seen, { kind: 'reached', certificate: { names: 'localhost', protocol: 'TLSv1.3' } });
  const { certificate } = seen as { certificate: { validUntil: Date } };
  const days = (certificate.validUntil.getTime() - Date.now()) / 86_400_000;
  t.ok(days > 4 && days <= 5);
  t.match(await reach(origin, limitMs), { kind: 'failed', code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
  const byAddress = `https://127.0.0.1:${upstream.port}`;
  t.match(await reach(byAddress, limitMs, { ca: pem }), {
    kind: 'failed',
    code: 'ERR_TLS_CERT_ALTNAME_INVALID',
  });
});

t.test('nothing there, no such name, nobody who answers', async (t) => {
  t.match(await reach(`http://127.0.0.1:${await closedPort()}`, limitMs), {
    kind: 'failed',
    code: 'ECONNREFUSED',
    reason: /./,
  });
  t.match(await reach('http://no-such-host.invalid', limitMs), { kind: 'failed', reason: /no-such-host/ });
  // It accepts, and never says a word of TLS.
  const mute = await RawUpstream.listen(scripts.silent());
  t.teardown(() => mute.close());
  t.match(await reach(`https://127.0.0.1:${mute.port}`, 100), {
    kind: 'failed',
    code: 'UND_ERR_CONNECT_TIMEOUT',
  });
});
