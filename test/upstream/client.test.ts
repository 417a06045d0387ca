import diagnostics from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { UpstreamClient, type UpstreamClientOptions } from '../../src/upstream/client.ts';
import { type RawConnection, type RawScript, RawUpstream, scripts } from '../helpers/raw-upstream.ts';
import { post, Recorder, send, target } from './send.ts';

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello';
const shortMs = 60;

interface Pair {
  readonly upstream: RawUpstream;
  readonly client: UpstreamClient;
}

async function pair(
  t: Test,
  script: RawScript,
  connections = 1,
  options: UpstreamClientOptions = {},
): Promise<Pair> {
  const upstream = await RawUpstream.listen(script);
  const client = new UpstreamClient(target(upstream.origin, connections), options);
  t.teardown(async () => {
    await client.destroy();
    await upstream.close();
  });
  return { upstream, client };
}

/** Answers all requests but those for `/stuck`, which wait in `stuck`. */
function stuckOr(stuck: RawConnection[]): RawScript {
  return {
    requested: (connection, _nth, { head }) =>
      void (head.startsWith('POST /stuck ') ? stuck.push(connection) : connection.socket.write(ok)),
  };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turn();
}

t.test('the request arrives byte for byte', async (t) => {
  const { upstream, client } = await pair(t, scripts.answer(ok));
  const body = Buffer.from(Array.from({ length: 70_000 }, (_, i) => i % 256));
  const { sink, ended } = send(client, {
    method: 'PATCH',
    path: '/a%2Fb//c?q=\xe9&&x=%20',
    headers: ['Host', 'pay.example:81', 'X-Twice', 'one', 'x-TWICE', 'tw\xf6', 'Content-Length', '70000'],
    body,
  });
  t.strictSame(await ended, {
    kind: 'answered',
    status: 200,
    hasRetryAfter: false,
    upstreamSays: null,
    closeFramed: false,
  });
  t.match(sink.heads, [{ status: 200, headers: ['Content-Length', '5'] }]);
  const request = upstream.connections[0]?.requests[0];
  t.ok(request?.body.equals(body));
  t.same(request?.head.split('\r\n'), [
    'PATCH /a%2Fb//c?q=\xe9&&x=%20 HTTP/1.1',
    'host: pay.example:81',
    'connection: keep-alive',
    'X-Twice: one',
    'x-TWICE: tw\xf6',
    'content-length: 70000',
  ]);
});

t.test('raw headers come through as latin1, in order, with their doubles', async (t) => {
  const fields = [
    'X-A',
    'caf\xe9',
    'Set-Cookie',
    'a=1',
    'set-cookie',
    'b=2',
    'X-Empty',
    '',
    '__proto__',
    'x',
  ];
  const lines = fields.map((field, i) => (i % 2 === 0 ? `${field}: ` : `${field}\r\n`)).join('');
  const { client } = await pair(
    t,
    scripts.answer(`HTTP/1.1 201 Created\r\n${lines}Content-Length: 0\r\n\r\n`),
  );
  const { sink, ended } = send(client);
  await ended;
  t.strictSame(sink.heads[0]?.headers, [...fields, 'Content-Length', '0']);
});

t.test('any method', async (t) => {
  const { upstream, client } = await pair(t, {
    requested: ({ socket }, _nth, { head }) =>
      void socket.write(head.startsWith('HEAD') ? 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n' : ok),
  });
  for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'PURGE']) {
    const body = method === 'PUT' || method === 'DELETE' ? post.body : Buffer.alloc(0);
    const { sink, ended } = send(client, { method, body });
    t.match(await ended, { kind: 'answered', status: 200, closeFramed: false }, method);
    t.equal(sink.body, method === 'HEAD' ? '' : 'hello', method);
  }
  t.same(
    upstream.connections.flatMap((c) => c.requests.map((r) => r.body.length)),
    [0, 0, 12, 12, 0, 0],
  );
});

t.test('mayStart is false: not one byte, and the connection stays', async (t) => {
  const { upstream, client } = await pair(t, scripts.answer(ok));
  t.match(await send(client, { mayStart: () => false }).ended, {
    kind: 'not_started',
    error: { code: 'start_refused' },
  });
  t.equal(upstream.bytes, 0);
  t.match(await send(client, { path: '/first' }).ended, { kind: 'answered' });
  t.match(await send(client, { mayStart: () => false }).ended, { kind: 'not_started' });
  t.match(await send(client, { path: '/second' }).ended, { kind: 'answered' });
  t.same(upstream.lines, ['POST /first HTTP/1.1', 'POST /second HTTP/1.1']);
  t.equal(upstream.connections.length, 1);
});

t.test('mayStart throws, or aborts its own call: not one byte', async (t) => {
  const { upstream, client } = await pair(t, scripts.answer(ok));
  const thrower = send(client, {
    mayStart: () => {
      throw new Error('no lease');
    },
  });
  t.match(await thrower.ended, { kind: 'not_started', error: { message: 'no lease' } });
  t.equal(upstream.bytes, 0);
  // On a connection that waits unused undici starts at once, before dispatch has returned: so not on that one.
  t.match(await send(client).ended, { kind: 'answered' });
  const { bytes } = upstream;
  const self = send(client, {
    mayStart: () => {
      self.call.abort(new Error('changed my mind'));
      return true;
    },
  });
  t.match(await self.ended, { kind: 'not_started', error: { message: 'changed my mind' } });
  t.equal(upstream.bytes, bytes);
});

t.test('mayStart is asked when the turn has come, not when queued', async (t) => {
  const stuck: RawConnection[] = [];
  const { upstream, client } = await pair(t, stuckOr(stuck));
  const first = send(client, { path: '/stuck' });
  await until(() => stuck.length === 1);
  let leased = true;
  const second = send(client, { path: '/second', mayStart: () => leased });
  leased = false;
  stuck[0]?.socket.write(ok);
  t.match(await first.ended, { kind: 'answered' });
  t.match(await second.ended, { kind: 'not_started' });
  t.same(upstream.lines, ['POST /stuck HTTP/1.1']);
});

t.test('timed out or aborted in the queue: not started, and never sent later', async (t) => {
  const stuck: RawConnection[] = [];
  const { upstream, client } = await pair(t, stuckOr(stuck));
  const first = send(client, { path: '/stuck' });
  await until(() => stuck.length === 1);
  let asked = 0;
  const mayStart = () => ++asked > 0;
  const late = send(client, { path: '/late', timeoutMs: shortMs, mayStart });
  const aborted = send(client, { path: '/aborted', mayStart });
  const last = send(client, { path: '/last' });
  aborted.call.abort(new Error('drain is over'));
  t.match(await aborted.ended, { kind: 'not_started', error: { message: 'drain is over' } });
  t.match(await late.ended, { kind: 'not_started', error: { code: 'timed_out' } });
  stuck[0]?.socket.write(ok);
  t.match(await first.ended, { kind: 'answered' });
  t.match(await last.ended, { kind: 'answered' });
  t.same(upstream.lines, ['POST /stuck HTTP/1.1', 'POST /last HTTP/1.1']);
  t.equal(upstream.connections.length, 1, 'refusing them cost no connection');
  for (const { sink } of [late, aborted]) t.equal(sink.endings.length, 1);
  t.equal(asked, 0, 'nobody is asked about a call that has ended');
});

t.test('what is sent has all of its time', async (t) => {
  const stuck: RawConnection[] = [];
  const { client } = await pair(t, stuckOr(stuck));
  const beganMs = performance.now();
  const { ended } = send(client, { path: '/stuck', timeoutMs: 1_000 });
  t.match(await ended, { kind: 'broken', timedOut: true });
  t.ok(performance.now() - beganMs >= 990);
});

t.test('abort in flight is broken, abort after the end is nothing', async (t) => {
  const stuck: RawConnection[] = [];
  const { client } = await pair(t, stuckOr(stuck));
  const { call, sink, ended } = send(client, { path: '/stuck' });
  await until(() => stuck.length === 1);
  const reason = new Error('drain is over');
  call.abort(reason);
  t.strictSame(sink.endings, [{ kind: 'broken', status: null, timedOut: false, error: reason }]);
  call.abort(new Error('again'));
  call.resume();
  const next = send(client);
  await next.ended;
  next.call.abort(new Error('too late'));
  await turn();
  t.equal(sink.endings.length + next.sink.endings.length, 2);
  await ended;
});

t.test(
  'undici re-sends a running request on an informational close: the second start is refused',
  async (t) => {
    let sockets: Socket[] = [];
    const remember = (message: unknown): void => void sockets.push((message as { socket: Socket }).socket);
    diagnostics.subscribe('undici:client:sendHeaders', remember);
    t.teardown(() => diagnostics.unsubscribe('undici:client:sendHeaders', remember));
    const stuck: RawConnection[] = [];
    const { upstream, client } = await pair(t, stuckOr(stuck));
    const first = send(client, { path: '/stuck', timeoutMs: 2_000 });
    await until(() => stuck.length === 1);
    sockets[0]?.destroy(Object.assign(new Error('reset'), { code: 'UND_ERR_INFO' }));
    sockets = [];
    t.match(await first.ended, { kind: 'broken', timedOut: false, error: { code: 'started_twice' } });
    t.match(await send(client, { path: '/next' }).ended, { kind: 'answered' });
    t.same(upstream.lines, ['POST /stuck HTTP/1.1', 'POST /next HTTP/1.1']);
  },
);

t.test('what undici refuses to send is not started, and no end comes before dispatch returns', async (t) => {
  const { upstream, client } = await pair(t, scripts.answer(ok));
  const bad = [
    { headers: ['Transfer-Encoding', 'chunked'] },
    { headers: ['Expect', '100-continue'] },
    { headers: ['Content-Length', '3'] },
    { headers: ['X', 'a\r\nb'] },
    { path: '/a b' },
    { path: 'relative' },
    { method: 'PO ST' },
  ];
  for (const changes of bad) {
    const { sink, ended } = send(client, changes);
    t.equal(sink.endings.length, 0);
    t.match(await ended, { kind: 'not_started', error: Error }, JSON.stringify(changes));
  }
  t.equal(upstream.bytes, 0);
  t.match(await send(client).ended, { kind: 'answered' }, 'and the only connection is still to be had');
  const stuck = [send(client), send(client, { path: '/a b' }), send(client)];
  t.match(
    await Promise.all(stuck.map(({ ended }) => ended)),
    [{ kind: 'answered' }, { kind: 'not_started' }, { kind: 'answered' }],
    'nor does one in the queue stop those behind it',
  );
});

t.test('keep-alive ends before the upstream says it will', async (t) => {
  const hint = (seconds: number) =>
    `HTTP/1.1 200 OK\r\nKeep-Alive: timeout=${seconds}\r\nContent-Length: 0\r\n\r\n`;
  const short = await pair(t, scripts.answer(hint(2)));
  const long = await pair(t, scripts.answer(hint(5)));
  for (const { client } of [short, long]) {
    await send(client).ended;
    await send(client).ended;
  }
  t.equal(short.upstream.connections.length, 2);
  t.equal(long.upstream.connections.length, 1);
});

t.test('a sink that throws loses no end and no connection pool', async (t) => {
  const faults: Error[] = [];
  const close = 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello';
  for (const answer of [ok, close]) {
    const { client } = await pair(t, scripts.answer(answer), 1, {
      onSinkError: (error) => void faults.push(error),
    });
    for (const callback of ['onHead', 'onData', 'onEnd'] as const) {
      const sink = new Recorder();
      const heard = sink.onEnd;
      Object.assign(sink, {
        [callback]: (ending: never) => {
          if (callback === 'onEnd') heard.call(sink, ending);
          throw new Error(`bug in ${callback}`);
        },
      });
      client.dispatch(post, sink);
      const ending = await sink.ended;
      if (callback === 'onEnd') t.match(ending, { kind: 'answered' });
      else
        t.match(ending, {
          kind: 'broken',
          status: 200,
          error: { code: 'sink_failed', cause: { message: `bug in ${callback}` } },
        });
      t.match(await send(client).ended, { kind: 'answered' }, `after ${callback}`);
      t.equal(sink.endings.length, 1);
    }
  }
  t.same(
    faults.map((fault) => fault.message),
    ['bug in onEnd', 'bug in onEnd'],
  );
});

t.test('destroy: running is broken, queued is not started, later is not started', async (t) => {
  const stuck: RawConnection[] = [];
  const { upstream, client } = await pair(t, stuckOr(stuck));
  const running = send(client, { path: '/stuck' });
  await until(() => stuck.length === 1);
  const queued = [send(client), send(client)];
  await client.destroy();
  t.match(await running.ended, { kind: 'broken', timedOut: false, error: { code: 'client_closed' } });
  for (const call of queued)
    t.match(await call.ended, { kind: 'not_started', error: { code: 'client_closed' } });
  t.match(await send(client).ended, { kind: 'not_started', error: { code: 'client_closed' } });
  t.same(upstream.lines, ['POST /stuck HTTP/1.1']);
  await client.close();
});

t.test('destroy reaches calls on a connection that the pool has forgotten', async (t) => {
  const silent: RawConnection[] = [];
  const { client } = await pair(t, {
    connected: ({ socket, index }) => void (index === 0 && socket.resetAndDestroy()),
    requested: (connection) => void silent.push(connection),
  });
  const first = send(client);
  const second = send(client);
  t.match(await first.ended, { kind: 'not_started' });
  await until(() => silent.length === 1);
  await client.destroy();
  t.match(second.sink.endings, [{ kind: 'broken', error: { code: 'client_closed' } }]);
});

t.test('close waits for what runs and what is queued, and takes no more', async (t) => {
  const stuck: RawConnection[] = [];
  const { upstream, client } = await pair(t, stuckOr(stuck));
  const running = send(client, { path: '/stuck' });
  const queued = send(client, { path: '/queued' });
  await until(() => stuck.length === 1);
  const closed = Promise.all([client.close(), client.close()]);
  t.match(await send(client).ended, { kind: 'not_started', error: { code: 'client_closed' } });
  t.equal(running.sink.endings.length, 0);
  stuck[0]?.socket.write(ok);
  await closed;
  t.match([...running.sink.endings, ...queued.sink.endings], [{ kind: 'answered' }, { kind: 'answered' }]);
  t.same(upstream.lines, ['POST /stuck HTTP/1.1', 'POST /queued HTTP/1.1']);
});
