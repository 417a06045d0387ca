import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import t from 'tap';
import { ask, problemOf } from '../helpers/client.ts';
import { RawUpstream, scripts } from '../helpers/raw-upstream.ts';
import { testUpstream } from '../helpers/upstream.ts';
import { closedPort, connect, exchange, passThrough, seen, target } from './pass-through-server.ts';

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

t.test('bodies of any kind arrive byte for byte, with their content type', async (t) => {
  const upstream = await testUpstream(t, (_one, res) => void res.end('ok'));
  const { url } = await passThrough(t, [target(upstream.url)]);
  const form = '--x y\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x y--\r\n';
  const bodies: [contentType: string, body: string | Buffer][] = [
    ['application/json', '{"amount": 9007199254740993, "amount":1e400}'],
    ['application/json', '{ not json'],
    ['multipart/form-data; boundary="x y"', form],
    ['application/x-www-form-urlencoded', 'a=1&a=%zz'],
    ['application/octet-stream', randomBytes(300_000)],
    ['garbage', 'x'],
    ['text/plain; charset=', 'y'],
    ['', 'z'],
    // Over Fastify's default limit of 1 MiB.
    ['application/json', randomBytes(3 << 20)],
  ];
  for (const method of ['POST', 'GET', 'QUERY', 'DELETE']) {
    for (const [contentType, body] of bodies) {
      const headers = { 'Content-Type': contentType };
      const answer = await ask(`${url}/`, { method, headers, body });
      t.equal(answer.status, 200, `${method} ${contentType}`);
      const got = upstream.executions.at(-1);
      t.ok(got?.body.equals(Buffer.from(body)), `${method} ${contentType}: same bytes`);
      t.equal(got?.headers['content-type'], contentType);
      t.equal(got?.headers['content-length'], String(Buffer.byteLength(body)));
    }
  }
});

t.test('chunked, absent and typeless bodies', async (t) => {
  const upstream = await testUpstream(t, (_one, res) => void res.end('ok'));
  const { port } = await passThrough(t, [target(upstream.url)]);
  const close = 'Host: a\r\nConnection: close\r\n';
  for (const method of ['POST', 'GET', 'QUERY', 'OPTIONS']) {
    await exchange(
      t,
      port,
      `${method} / HTTP/1.1\r\n${close}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\nT: 1\r\n\r\n`,
    );
    const chunked = upstream.executions.at(-1);
    t.equal(chunked?.body.toString(), 'abcde', method);
    t.equal(chunked?.headers['content-type'], undefined);
    await exchange(t, port, `${method} / HTTP/1.1\r\n${close}\r\n`);
    const none = upstream.executions.at(-1);
    t.equal(none?.body.length, 0);
    t.equal(none?.headers['transfer-encoding'], undefined);
  }
  t.equal(upstream.executions.length, 8);
});

t.test("the client's own connection is its own matter", async (t) => {
  const upstream = await testUpstream(t, (_one, res) => void res.end('ok'));
  const { port } = await passThrough(t, [target(upstream.url)]);
  const variants = [
    'Expect: 100-continue\r\nConnection: close\r\n',
    'Keep-Alive: 300\r\nConnection: close\r\n',
    'Upgrade: h2c\r\nConnection: close\r\n',
    'Connection: close, X-Foo, Keep-Alive\r\nX-Foo: secret\r\nKeep-Alive: 3\r\nTE: trailers\r\nProxy-Connection: x\r\n',
    'Connection: close\r\nConnection: x-foo\r\nX-Foo: secret\r\nTrailer: T\r\n',
  ];
  for (const variant of variants) {
    const answer = await exchange(
      t,
      port,
      `POST / HTTP/1.1\r\nHost: a\r\n${variant}Content-Length: 4\r\n\r\nbody`,
    );
    t.match(answer, /(^|\r\n\r\n)HTTP\/1\.1 200 OK\r\n/, variant);
    const got = upstream.executions.at(-1);
    t.equal(got?.body.toString(), 'body');
    t.equal(got?.headers.connection, 'keep-alive');
    const gone = ['expect', 'keep-alive', 'upgrade', 'x-foo', 'te', 'proxy-connection', 'trailer'];
    t.strictSame(
      gone.filter((name) => got?.headers[name] !== undefined),
      [],
      variant,
    );
  }
});

t.test('an offer of h2c is declined, and the body is read', async (t) => {
  const upstream = await testUpstream(t, (_one, res) => void res.end('ok'));
  const { port } = await passThrough(t, [target(upstream.url)]);
  const offer =
    'Host: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n';
  const socket = await connect(t, port);
  // On one connection: it must stay usable.
  for (const request of [
    `POST /1 HTTP/1.1\r\n${offer}Content-Length: 5\r\n\r\nhello`,
    `GET /2 HTTP/1.1\r\n${offer}\r\n`,
    `POST /3 HTTP/1.1\r\n${offer.replace('h2c', 'websocket')}Content-Length: 3\r\n\r\nabc`,
  ]) {
    const answered = seen(socket, (text) => text.endsWith('ok'));
    socket.write(request);
    t.match(await answered, /^HTTP\/1\.1 200 OK\r\n/);
  }
  t.strictSame(
    upstream.executions.map(({ url, body, headers }) => [url, body.toString(), headers['http2-settings']]),
    [
      ['/1', 'hello', undefined],
      ['/2', '', undefined],
      ['/3', 'abc', undefined],
    ],
  );
});

t.test('an upload waits for a slow upstream instead of filling our memory', async (t) => {
  const total = 50 << 20;
  const block = Buffer.alloc(64 * 1024, 'x');
  const upstream = await testUpstream(t, ({ body }, res) => {
    t.equal(body.length, total);
    res.end('ok');
  });
  // Reads the head, and nothing more until it is told to.
  let goOn = () => {};
  upstream.begun = (req) => {
    req.pause();
    goOn = () => req.resume();
  };
  const { port } = await passThrough(t, [target(upstream.url, { timeoutMs: 60_000 })]);
  const socket = await connect(t, port);
  const before = process.memoryUsage().rss;
  socket.write(`PUT /big HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ${total}\r\n\r\n`);
  let sent = 0;
  const fill = () => {
    while (sent < total) {
      sent += block.length;
      if (!socket.write(block)) return;
    }
  };
  socket.on('drain', fill);
  fill();
  // Until nothing moves any more.
  for (let last = -1; last !== sent; ) {
    last = sent;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  t.ok(sent < total / 2, `${sent >> 20} MB of ${total >> 20} went in, most of it into the kernel's buffers`);
  t.ok(process.memoryUsage().rss - before < 32 << 20, 'and not into ours');
  const answered = seen(socket, (text) => text.endsWith('ok'));
  goOn();
  t.match(await answered, /^HTTP\/1\.1 200 OK\r\n/);
  t.equal(sent, total);
});

t.test('an upload that is answered early gets to see the answer, and the connection lives on', async (t) => {
  const refusal = 'HTTP/1.1 413 Too Large\r\nContent-Length: 7\r\nConnection: close\r\n\r\ntoo big';
  const upstream = await RawUpstream.listen({
    firstBytes: ({ socket, index }) => void (index === 0 ? socket.write(refusal) : socket.write(ok)),
  });
  t.teardown(() => upstream.close());
  const { port } = await passThrough(t, [target(upstream.origin)]);
  const socket = await connect(t, port);
  const length = 8 << 20;
  const answered = seen(socket, (text) => text.endsWith('too big'));
  socket.write(`PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`);
  socket.write(Buffer.alloc(length / 2));
  const answer = await answered;
  t.match(answer, /^HTTP\/1\.1 413 /);
  t.notMatch(answer, /connection: close/i);
  socket.write(Buffer.alloc(length / 2));
  const next = seen(socket, (text) => text.endsWith('ok'));
  socket.write('GET /next HTTP/1.1\r\nHost: a\r\n\r\n');
  t.match(await next, /^HTTP\/1\.1 200 /);
});

t.test('an upload to nobody gets its 502, and the connection lives on', async (t) => {
  const { port } = await passThrough(t, [target(`http://127.0.0.1:${await closedPort()}`)]);
  const socket = await connect(t, port);
  for (const length of [8 << 20, 200_000, 70_000, 10]) {
    const answered = seen(socket, (text) => text.endsWith('}'));
    socket.write(`PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`);
    socket.write(Buffer.alloc(length));
    t.match(await answered, /^HTTP\/1\.1 502 .*"upstream_unreachable"/s);
  }
});

t.test('a client that leaves takes its request with it', async (t) => {
  const upstream = await RawUpstream.listen(scripts.silent());
  t.teardown(() => upstream.close());
  const { port, url } = await passThrough(t, [target(upstream.origin, { connections: 1, timeoutMs: 3_000 })]);
  for (const request of [
    'GET /1 HTTP/1.1\r\nHost: a\r\n\r\n',
    `PUT /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n${'x'.repeat(100_000)}`,
  ]) {
    const known = upstream.connections.length;
    const socket = await connect(t, port);
    socket.write(request);
    while (upstream.connections.length === known || upstream.connections.at(-1)?.bytes === 0) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    const gone = once(upstream.connections.at(-1)?.socket as Socket, 'close');
    socket.destroy();
    await gone;
  }
  // While another holds the only connection, one that gave up in the queue is never sent.
  const holder = await connect(t, port);
  holder.write('GET /holder HTTP/1.1\r\nHost: a\r\n\r\n');
  while (upstream.connections.length < 3) await new Promise((resolve) => setImmediate(resolve));
  const queued = await connect(t, port);
  queued.write('DELETE /queued HTTP/1.1\r\nHost: a\r\n\r\n');
  const late = ask(`${url}/late`, { method: 'GET' });
  await new Promise((resolve) => setTimeout(resolve, 100));
  queued.destroy();
  await new Promise((resolve) => setTimeout(resolve, 100));
  holder.destroy();
  t.equal(problemOf(await late).code, 'upstream_timeout', 'this one was sent');
  t.notOk(upstream.lines.includes('DELETE /queued HTTP/1.1'));
  t.ok(upstream.lines.includes('GET /late HTTP/1.1'));
});
