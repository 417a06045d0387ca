import { createHash, randomBytes } from 'node:crypto';
import { setTimeout, setImmediate as turn } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { UpstreamClient } from '../../src/upstream/client.ts';
import { type RawScript, RawUpstream, scripts } from '../helpers/raw-upstream.ts';
import { post, Recorder, send, target } from './send.ts';

const large = randomBytes(8 * 1024 * 1024);
/** One read of undici: what may still come after the sink said no. */
const inHand = 64 * 1024;

/** The framings differ in how undici learns of the end; those that close are where its own pause ends the process. */
const framings: Record<string, { head: (length: number) => string; closes: boolean; closeFramed: boolean }> =
  {
    'length, kept alive': { head: (n) => `Content-Length: ${n}\r\n`, closes: false, closeFramed: false },
    'length, closed': {
      head: (n) => `Connection: close\r\nContent-Length: ${n}\r\n`,
      closes: true,
      closeFramed: false,
    },
    'no length, closed': { head: () => '', closes: true, closeFramed: true },
  };

async function connect(
  t: Test,
  script: RawScript,
): Promise<{ upstream: RawUpstream; client: UpstreamClient }> {
  const upstream = await RawUpstream.listen(script);
  const client = new UpstreamClient(target(upstream.origin, 1));
  t.teardown(async () => {
    await client.destroy();
    await upstream.close();
  });
  return { upstream, client };
}

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await turn();
}

for (const [name, framing] of Object.entries(framings)) {
  const script = (body: Buffer): RawScript => ({
    requested: ({ socket }) => {
      socket.write(`HTTP/1.1 200 OK\r\n${framing.head(body.length)}\r\n`);
      socket.write(body);
      if (framing.closes) socket.end();
    },
  });

  t.test(`${name}: a large body, stopped at each chunk`, async (t) => {
    const { client } = await connect(t, script(large));
    const sink = new Recorder();
    sink.afterData = () => {
      setImmediate(() => call.resume());
      return false;
    };
    const call = client.dispatch(post, sink);
    t.match(await sink.ended, { kind: 'answered', closeFramed: framing.closeFramed });
    const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
    t.equal(digest(Buffer.concat(sink.chunks)), digest(large));
    t.match(await send(client).ended, { kind: 'answered' }, 'the next call is not held');
  });

  t.test(`${name}: a sink that says no gets no more`, async (t) => {
    const { client } = await connect(t, script(large));
    const sink = new Recorder();
    sink.afterData = () => false;
    const call = client.dispatch(post, sink);
    while (sink.chunks.length === 0) await turn();
    await turns(200);
    t.ok(Buffer.concat(sink.chunks).length <= inHand);
    t.equal(sink.endings.length, 0);
    sink.afterData = () => true;
    call.resume();
    t.match(await sink.ended, { kind: 'answered' });
    t.equal(Buffer.concat(sink.chunks).length, large.length);
  });

  t.test(`${name}: the whole small body and the end come while held`, async (t) => {
    const { upstream, client } = await connect(t, {
      requested: ({ socket }) => void socket.write(`HTTP/1.1 200 OK\r\n${framing.head(40_005)}\r\nhello`),
    });
    const sink = new Recorder();
    sink.afterData = () => false;
    const call = client.dispatch(post, sink);
    while (sink.chunks.length === 0) await turn();
    const socket = upstream.connections[0]?.socket;
    socket?.write(Buffer.alloc(40_000));
    if (framing.closes) socket?.end();
    await turns(50);
    t.equal(sink.body, 'hello');
    // Held again in the last chunk: with undici's own pause this was the end of the process.
    call.resume();
    t.match(await sink.ended, { kind: 'answered', closeFramed: framing.closeFramed });
    t.equal(sink.body.length, 40_005);
  });

  t.test(`${name}: reset while held, with bytes not read`, async (t) => {
    const { upstream, client } = await connect(t, {
      requested: ({ socket }) => void socket.write(`HTTP/1.1 200 OK\r\n${framing.head(40_005)}\r\nhello`),
    });
    const sink = new Recorder();
    sink.afterData = () => false;
    client.dispatch(post, sink);
    while (sink.chunks.length === 0) await turn();
    const socket = upstream.connections[0]?.socket;
    await new Promise<void>((resolve) => socket?.write(Buffer.alloc(20_000), () => resolve()));
    await turns(50);
    socket?.resetAndDestroy();
    t.match(await sink.ended, { kind: 'broken', status: 200 });
  });
}

t.test('no length: all of it read while held, then a reset', async (t) => {
  const { upstream, client } = await connect(t, scripts.answer('HTTP/1.1 500 Oops\r\n\r\nhello'));
  const sink = new Recorder();
  sink.afterData = () => false;
  const call = client.dispatch(post, sink);
  while (sink.chunks.length === 0) await turn();
  upstream.connections[0]?.socket.resetAndDestroy();
  await turns(50);
  call.resume();
  t.match(await sink.ended, { kind: 'broken', status: 500 });
});

/** Answers in part; the rest is up to the test. */
const begun = scripts.answer('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\nhello');

t.test("time in which we hold the upstream up is not the upstream's", async (t) => {
  const { upstream, client } = await connect(t, begun);
  const sink = new Recorder();
  sink.afterData = () => false;
  const timeoutMs = 1_000;
  const call = client.dispatch({ ...post, timeoutMs }, sink);
  while (sink.chunks.length === 0) await turn();
  await setTimeout(timeoutMs + 100);
  t.same(sink.endings, []);
  call.resume();
  upstream.connections[0]?.socket.write('rest');
  t.match(await sink.ended, { kind: 'answered', status: 200 });
});

t.test('what it has left runs on once it is let go', async (t) => {
  const { client } = await connect(t, begun);
  const sink = new Recorder();
  sink.afterData = () => false;
  const call = client.dispatch({ ...post, timeoutMs: 300 }, sink);
  while (sink.chunks.length === 0) await turn();
  call.resume();
  t.match(await sink.ended, { kind: 'broken', status: 200, timedOut: true });
});

t.test('one call is resumed inside the callback of another', async (t) => {
  const upstream = await RawUpstream.listen({
    requested: ({ socket }) =>
      void socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n${'x'.repeat(200_000)}`),
  });
  const client = new UpstreamClient(target(upstream.origin, 2));
  t.teardown(async () => {
    await client.destroy();
    await upstream.close();
  });
  const held = new Recorder();
  held.afterData = () => false;
  const call = client.dispatch(post, held);
  while (held.chunks.length === 0) await turn();
  held.afterData = () => true;
  const { sink, ended } = send(client);
  sink.afterData = () => {
    call.resume();
    return true;
  };
  t.match(await Promise.all([held.ended, ended]), [{ kind: 'answered' }, { kind: 'answered' }]);
});
