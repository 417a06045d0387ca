import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { ask } from '../helpers/client.ts';
import { RawUpstream, scripts } from '../helpers/raw-upstream.ts';
import { testUpstream } from '../helpers/upstream.ts';
import { connect, exchange, passThrough, seen, target } from './pass-through-server.ts';

const get = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';

t.test('events arrive one by one, after a head that does not wait for them', async (t) => {
  let res: ServerResponse | undefined;
  const upstream = await testUpstream(t, (_one, answer) => {
    res = answer;
    answer.writeHead(200, { 'Content-Type': 'text/event-stream' });
    answer.flushHeaders();
  });
  // Shorter than what the stream will last.
  const { port } = await passThrough(t, [target(upstream.url, { timeoutMs: 1_000 })]);
  const socket = await connect(t, port);
  const head = seen(socket, (text) => text.includes('\r\n\r\n'));
  socket.write('GET /events HTTP/1.1\r\nHost: a\r\n\r\n');
  t.match(await head, /content-type: text\/event-stream\r\n/);
  for (const event of ['data: 1\n\n', 'data: 2\n\n']) {
    const arrived = seen(socket, (text) => text.includes(event));
    res?.write(event);
    await arrived;
  }
  // undici looks at its timers twice a second.
  await new Promise((resolve) => setTimeout(resolve, 1_600));
  const last = seen(socket, (text) => text.endsWith('0\r\n\r\n'));
  res?.end('data: 3\n\n');
  t.match(await last, 'data: 3\n\n', 'silence is not cut');
});

t.test('a large answer waits for a slow client', async (t) => {
  const total = 50 << 20;
  const block = Buffer.alloc(64 * 1024, 'x');
  let sent = 0;
  const upstream = await testUpstream(t, (_one, res) => {
    res.writeHead(200, { 'Content-Length': total });
    const fill = () => {
      while (sent < total) {
        sent += block.length;
        if (!res.write(block)) return;
      }
      res.end();
    };
    res.on('drain', fill);
    fill();
  });
  const { port } = await passThrough(t, [target(upstream.url)]);
  const socket = await connect(t, port);
  const before = process.memoryUsage().rss;
  socket.pause();
  socket.write(get);
  for (let last = -1; last !== sent || sent === 0; ) {
    last = sent;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  t.ok(sent < total / 2, `${sent >> 20} MB of ${total >> 20} were taken`);
  t.ok(process.memoryUsage().rss - before < 32 << 20, 'and not into our memory');
  let got = 0;
  socket.on('data', (chunk) => {
    got += chunk.length;
  });
  socket.resume();
  await once(socket, 'close');
  t.ok(got > total);
});

t.test('an upstream that closes while a slow client holds its answer back', async (t) => {
  // A FIN or a reset met by undici's own paused parser ends the process (nodejs/undici#5360).
  const body = randomBytes(4 << 20);
  const head = 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: x/y\r\n';
  for (const framing of ['', `Content-Length: ${body.length}\r\n`]) {
    const upstream = await RawUpstream.listen({
      requested: ({ socket }) => {
        socket.write(`${head}${framing}\r\n`);
        socket.end(body);
      },
    });
    t.teardown(() => upstream.close());
    const { port } = await passThrough(t, [target(upstream.origin)]);
    const socket = await connect(t, port);
    socket.pause();
    socket.write(get);
    await new Promise((resolve) => setTimeout(resolve, 300));
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.resume();
    await once(socket, 'close');
    const all = Buffer.concat(chunks);
    if (framing !== '') t.ok(all.subarray(-body.length).equals(body));
    else t.ok(all.length > body.length && all.subarray(-5).equals(Buffer.from('0\r\n\r\n')));
  }
});

t.test('answers keep their status, headers and bytes', async (t) => {
  const zipped = gzipSync('hello '.repeat(1_000));
  const upstream = await testUpstream(t);
  const { url } = await passThrough(t, [target(upstream.url)]);
  const cases: [headers: Record<string, string | string[]>, body: Buffer, status: number][] = [
    [{ 'content-type': 'application/json' }, Buffer.from('{"n": 9007199254740993}'), 200],
    [{ 'content-type': 'text/plain', 'content-encoding': 'gzip', etag: 'W/"1"' }, zipped, 206],
    [
      { 'set-cookie': ['a=1; Path=/', 'b=2'], link: '</a>, </b>', 'content-type': 'x/y' },
      Buffer.from('c'),
      404,
    ],
    [{ location: '/somewhere/else' }, Buffer.alloc(0), 302],
    [{ location: 'http://other.example/' }, Buffer.from('no type'), 307],
    [{ 'content-type': 'application/octet-stream' }, randomBytes(700_000), 599],
    [{ 'content-type': '' }, Buffer.from('x'), 200],
  ];
  for (const [headers, body, status] of cases) {
    for (const framing of ['length', 'chunked']) {
      upstream.respond = (_one, res) => {
        res.writeHead(status, framing === 'length' ? { ...headers, 'content-length': body.length } : headers);
        // In two writes, or in one with the head.
        if (framing === 'chunked') res.write(body.subarray(0, 1));
        res.end(framing === 'chunked' ? body.subarray(1) : body);
      };
      const answer = await ask(`${url}/`, { method: 'GET' });
      const name = `${JSON.stringify(headers)} ${framing}`;
      t.equal(answer.status, status, name);
      t.ok(answer.body.equals(body), `${name}: same bytes`);
      t.match(answer.headers, headers, name);
      t.equal(answer.headers['content-type'], headers['content-type'], `${name}: no type but its own`);
      t.ok(answer.headers['x-request-id'], name);
    }
  }
});

t.test('answers without body', async (t) => {
  const upstream = await RawUpstream.listen({
    requested: ({ socket }, _nth, { head }) => {
      const path = head.split(' ', 2)[1];
      if (path === '/304')
        socket.write('HTTP/1.1 304 Not Modified\r\nETag: "1"\r\nContent-Length: 7\r\n\r\n');
      else if (path === '/204')
        socket.write('HTTP/1.1 204 No Content\r\nContent-Length: 0\r\nX-A: 1\r\n\r\n');
      else if (path === '/json') {
        socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 123\r\n\r\n');
      } else if (path === '/unknown')
        socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n');
      else socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n');
    },
  });
  t.teardown(() => upstream.close());
  const { port } = await passThrough(t, [target(upstream.origin)]);
  const to = (line: string) => exchange(t, port, `${line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  const json = await to('HEAD /json');
  t.match(json, /^HTTP\/1\.1 200 OK\r\n.*content-length: 123\r\n.*\r\n\r\n$/s);
  t.match(json, /content-type: application\/json\r\n/);
  t.match(await to('HEAD /unknown'), /^HTTP\/1\.1 200 OK\r\n.*\r\n\r\n$/s);
  const unmodified = await to('GET /304');
  t.match(unmodified, /^HTTP\/1\.1 304 Not Modified\r\n.*etag: "1"\r\n.*\r\n\r\n$/s);
  t.notMatch(unmodified, /transfer-encoding/);
  const none = await to('DELETE /204');
  t.match(none, /^HTTP\/1\.1 204 No Content\r\n.*x-a: 1\r\n.*\r\n\r\n$/s);
  t.notMatch(none, /content-length|transfer-encoding/i);
  t.match(await to('POST /empty'), /^HTTP\/1\.1 200 OK\r\n.*content-length: 0\r\n.*\r\n\r\n$/s);
});

t.test('what the upstream says about its own connection, and to us, stays here', async (t) => {
  const upstream = await RawUpstream.listen(
    scripts.answer(
      'HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\nKeep-Alive: timeout=1\r\nX-Hop: 1\r\nProxy-Connection: y\r\n' +
        'Trailer: T\r\nOncegate-Outcome: executed\r\nX-Request-Id: theirs\r\nContent-Disposition: caf\xc3\xa9\r\n' +
        'Content-Length: 2\r\n\r\nok',
    ),
  );
  t.teardown(() => upstream.close());
  const { port } = await passThrough(t, [target(upstream.origin)]);
  const socket = await connect(t, port);
  for (const number of [1, 2]) {
    const answered = seen(socket, (text) => text.endsWith('ok'));
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    const answer = await answered;
    t.notMatch(
      answer,
      /x-hop|proxy-connection|trailer|oncegate|theirs|close|timeout=1\r/i,
      `answer ${number}`,
    );
    t.match(answer, `x-request-id: request-${number}\r\n`);
    t.match(answer, 'content-disposition: caf\xc3\xa9\r\n', 'bytes of a header survive');
  }
});

t.test('fields sent twice, and odd bytes in them', async (t) => {
  const upstream = await RawUpstream.listen({
    requested: ({ socket }, _nth, { head }) => {
      const odd = String.fromCharCode(Number(/x-byte: (\d+)/i.exec(head)?.[1]));
      socket.write(
        `HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Type: c/d\r\nX-Odd: <${odd}>\r\nX-Two: 1\r\nX-Two: 2\r\nContent-Length: 2\r\n\r\nok`,
        'latin1',
      );
    },
  });
  t.teardown(() => upstream.close());
  const { url } = await passThrough(t, [target(upstream.origin)]);
  for (let byte = 0; byte < 256; byte++) {
    const answer = await ask(url, { method: 'GET', headers: { 'X-Byte': String(byte) } });
    if (answer.status === 200) {
      const wanted = ['x-odd', `<${String.fromCharCode(byte)}>`, 'x-two', '1', 'x-two', '2'];
      const got = answer.rawHeaders.join('\n');
      if (byte !== 10 && byte !== 13) t.ok(got.includes(wanted.join('\n')), `byte ${byte} survives`);
      t.ok(got.includes('content-type\na/b\ncontent-type\nc/d'));
    } else t.ok(answer.status === 502 && (byte < 32 || byte === 127), `byte ${byte} is refused`);
  }
});

t.test('informational answers are not taken for the answer', async (t) => {
  const upstream = await RawUpstream.listen(
    scripts.answer(
      'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
    ),
  );
  t.teardown(() => upstream.close());
  const { port } = await passThrough(t, [target(upstream.origin)]);
  t.match(await exchange(t, port, get), /^HTTP\/1\.1 200 OK\r\n.*\r\n\r\nok$/s);
});

t.test('a body that is cut short upstream is cut short here', async (t) => {
  const cut = [
    'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n',
    'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n',
  ];
  for (const bytes of cut) {
    for (const script of [scripts.answerThenClose(bytes), scripts.answerThenReset(bytes)]) {
      const upstream = await RawUpstream.listen(script);
      t.teardown(() => upstream.close());
      const { url } = await passThrough(t, [target(upstream.origin)]);
      const asked = ask(url, { method: 'GET' });
      await asked.then(
        // Seen before its head was passed on: then it is a problem of its own.
        (answer) => t.match(answer, { status: 502, headers: { 'content-type': 'application/problem+json' } }),
        (error: NodeJS.ErrnoException) => t.match(error.code, /^(ECONNRESET|HPE_INVALID_EOF_STATE)$/),
      );
      t.equal(upstream.lines.length, 1);
    }
  }
});

t.test('a body without length that is reset looks cut, and one that is closed does not', async (t) => {
  const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n';
  for (const version of ['1.1', '1.0']) {
    for (const held of [false, true]) {
      for (const isReset of [true, false]) {
        const name = `HTTP/${version}, ${isReset ? 'reset' : 'closed'}${held ? ', its last bytes on the heels' : ''}`;
        const upstream = await RawUpstream.listen({
          requested: ({ socket }) => {
            socket.write(head);
            if (held) socket.write('half', () => (isReset ? socket.resetAndDestroy() : socket.end()));
            else socket.write('half');
          },
        });
        t.teardown(() => upstream.close());
        const { port } = await passThrough(t, [target(upstream.origin)]);
        const socket = await connect(t, port);
        let text = '';
        socket.on('data', (chunk) => {
          text += chunk.toString('latin1');
          const upstreamSocket = upstream.connections[0]?.socket;
          if (held || !text.includes('half')) return;
          if (isReset) upstreamSocket?.resetAndDestroy();
          else upstreamSocket?.end();
        });
        let isResetHere = false;
        socket.on('error', (error: NodeJS.ErrnoException) => {
          isResetHere = error.code === 'ECONNRESET';
        });
        // A reset that comes with the last data is reported here as an end, too: but then there is no peer.
        socket.prependListener('end', () => {
          isResetHere = socket.remoteAddress === undefined;
        });
        socket.write(`GET / HTTP/${version}\r\nHost: a\r\nConnection: close\r\n\r\n`);
        await new Promise((resolve) => socket.once('close', resolve));
        const isProblem = text.includes('upstream_failed');
        if (version === '1.1')
          t.equal(text.endsWith('\r\n0\r\n\r\n'), !isReset && !isProblem, `${name}: the last chunk`);
        else t.equal(isResetHere || isProblem, isReset, name);
      }
    }
  }
});
