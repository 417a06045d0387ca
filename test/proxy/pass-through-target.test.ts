import { METHODS } from 'node:http';
import t from 'tap';
import { ask, problemOf } from '../helpers/client.ts';
import { RawUpstream, scripts } from '../helpers/raw-upstream.ts';
import { exchange, passThrough, target } from './pass-through-server.ts';

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

t.test('path and query arrive byte for byte', async (t) => {
  const upstream = await RawUpstream.listen(scripts.answer(ok));
  t.teardown(() => upstream.close());
  const { port } = await passThrough(t, [target(upstream.origin, { connections: 1 })]);
  const targets = [
    '/',
    '/?',
    '/a?',
    '/a??b?c',
    '/a?b=%zz&c=1+2&&d',
    '//a//b/',
    '/a%2Fb%5c',
    '/a;v=1;w?x;y',
    '/%E2%82%AC/%e2%82%ac',
    '/caf%E9',
    '/%zz/%',
    '/a/../b/./c/..%2f',
    '/[x]|{y}"^`\\z',
    '/:id/*',
    `/${'long/'.repeat(1_500)}`,
  ];
  for (const one of targets) {
    const answer = await exchange(t, port, `GET ${one} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    t.match(answer, /^HTTP\/1\.1 200 /, one.slice(0, 40));
  }
  t.strictSame(
    upstream.lines,
    targets.map((one) => `GET ${one} HTTP/1.1`),
  );
});

t.test('every method passes, with its body', async (t) => {
  const upstream = await RawUpstream.listen(scripts.answer(ok));
  t.teardown(() => upstream.close());
  const { url } = await passThrough(t, [target(upstream.origin)]);
  const carried = METHODS.filter((method) => method !== 'CONNECT' && method !== 'TRACE');
  t.ok(carried.includes('QUERY') && carried.includes('PROPFIND'));
  for (const method of carried) {
    const answer = await ask(`${url}/m`, { method, body: `body of ${method}` });
    t.equal(answer.status, 200, method);
  }
  const requests = upstream.connections.flatMap((connection) => connection.requests);
  t.strictSame(
    requests.map(({ head, body }) => `${head.split(' ', 1)[0]} ${body.toString()}`).sort(),
    carried.map((method) => `${method} body of ${method}`).sort(),
  );
});

t.test('what cannot be passed on is refused as a problem', async (t) => {
  const upstream = await RawUpstream.listen(scripts.answer(ok));
  t.teardown(() => upstream.close());
  const { url, port } = await passThrough(t, [target(upstream.origin)]);
  const trace = await ask(url, { method: 'TRACE' });
  t.equal(trace.status, 501);
  t.match(problemOf(trace), { code: 'not_supported', status: 501 });
  for (const one of ['OPTIONS *', 'GET http://elsewhere.example/x']) {
    const answer = await exchange(t, port, `${one} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    t.match(
      answer,
      /^HTTP\/1\.1 400 .*content-type: application\/problem\+json\r\n.*"code":"request_invalid"/s,
    );
  }
  t.equal(upstream.bytes, 0);
});

t.test('hooks see the true target', async (t) => {
  const upstream = await RawUpstream.listen(scripts.answer(ok));
  t.teardown(() => upstream.close());
  const asked: string[] = [];
  const one = target(upstream.origin);
  const { url } = await passThrough(t, [one], (method, path) => {
    asked.push(`${method} ${path}`);
    return one;
  });
  await ask(`${url}/caf%E9?x=%zz`, { method: 'DELETE' });
  t.strictSame(asked, ['DELETE /caf%E9?x=%zz']);
});
