import t from 'tap';
import { RawUpstream, scripts } from '../helpers/raw-upstream.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { until } from '../helpers/until.ts';
import { connect, seen } from '../proxy/pass-through-server.ts';

const early = 'HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno';
const head = 'HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n';
const key = 'Idempotency-Key: k\r\n';
const tenant = 'X-Tenant: t\r\n';

const rows: readonly [what: string, status: number, request: string][] = [
  ['no key', 400, `POST /a ${head}${tenant}\r\n`],
  ['a key that is none', 400, `POST /a ${head}${tenant}${key}${key}\r\n`],
  ['no tenant', 401, `POST /a ${head}${key}\r\n`],
  ['a body over the limit', 413, `POST /a ${head.replace('5000', '500000')}${tenant}${key}\r\n`],
  ['gRPC', 501, `POST /a ${head.replace('json', 'grpc')}${tenant}${key}\r\n`],
  ['two Hosts', 400, `POST /a ${head}Host: b\r\n${tenant}${key}\r\n`],
  ['passed through, answered early', 400, `PUT /a ${head}${tenant}\r\n`],
  ['passed through, TRACE', 501, `TRACE /a ${head}${tenant}\r\n`],
];

t.test('a client that drips its body after a refusal reads the refusal, and is closed', async (t) => {
  const upstream = await RawUpstream.listen(scripts.answerEarly(early));
  t.teardown(() => upstream.close());
  const { dataUrl } = await sidecar(t, {
    upstream: upstream.origin,
    config: 'tenant: { from: { header: X-Tenant } }\ndefaults: { maxRequestBody: 100kb }',
  });
  const port = Number(new URL(dataUrl).port);
  await Promise.all(
    rows.map(async ([what, status, request]) => {
      const socket = await connect(t, port);
      const answer = seen(socket, (text) => /\r\n\r\n./.test(text));
      socket.write(request);
      const drip = setInterval(() => socket.write('x'), 100);
      t.match(await answer, new RegExp(`^HTTP/1\\.1 ${status} `), what);
      await until(`${what}: closed`, () => socket.destroyed, 25_000);
      clearInterval(drip);
    }),
  );
});
