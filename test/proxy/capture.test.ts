import { once } from 'node:events';
import { createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { createMemos } from '../../src/core/memos.ts';
import type { Ending } from '../../src/core/settle.ts';
import { Budget } from '../../src/proxy/budget.ts';
import { Capture, type Captured } from '../../src/proxy/capture.ts';
import { type Patience, usualPatience } from '../../src/proxy/patience.ts';
import { Share } from '../../src/proxy/share.ts';
import { UpstreamClient } from '../../src/upstream/client.ts';
import { ask, problemOf } from '../helpers/client.ts';
import { type RawScript, RawUpstream } from '../helpers/raw-upstream.ts';
import { recordOf } from '../helpers/records.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { until } from '../helpers/until.ts';
import { post, target } from '../upstream/send.ts';
import { connect } from './pass-through-server.ts';

const total = 30_000_000;
const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nSet-Cookie: a=1\r\n';
const chunkBytes = 100_000;
const plain = Buffer.alloc(chunkBytes, 'x');

interface Shape {
  /** So many bytes are sent, then the connection is reset. */
  readonly cutAt?: number;
  /** Without a length, in chunks. */
  readonly chunked?: boolean;
}

/** Sends all of it as fast as it is taken. */
function large({ cutAt, chunked }: Shape): RawScript & { sent(): number } {
  let sent = 0;
  const chunk = chunked ? Buffer.from(`${chunkBytes.toString(16)}\r\n${plain.toString()}\r\n`) : plain;
  const framing = chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${total}`;
  const pump = (socket: Socket): void => {
    while (sent < total && !socket.destroyed) {
      if (cutAt !== undefined && sent >= cutAt) return void socket.resetAndDestroy();
      sent += chunkBytes;
      if (!socket.write(chunk)) return void socket.once('drain', () => pump(socket));
    }
  };
  const requested = ({ socket }: { socket: Socket }) => {
    socket.write(`${head}${framing}\r\n\r\n`);
    pump(socket);
  };
  return { requested, sent: () => sent };
}

async function largeUpstream(t: Test, shape: Shape = {}) {
  const script = large(shape);
  const upstream = await RawUpstream.listen(script);
  t.teardown(() => upstream.close());
  return { upstream, sent: script.sent };
}

interface Handing extends Partial<Patience> {
  readonly limitBytes?: number;
  readonly timeoutMs?: number;
  /** The record waits for the end, too. */
  readonly unsettled?: boolean;
}

/** A server that hands each answer of the upstream on through a capture. */
async function handingOn(t: Test, origin: string, how: Handing) {
  const client = new UpstreamClient(target(origin));
  t.teardown(() => client.destroy());
  const budget = new Budget(100_000_000);
  const captured: Captured[] = [];
  const streamed: Promise<void>[] = [];
  const endings: Promise<Ending>[] = [];
  const { limitBytes = 1_000, timeoutMs = 60_000 } = how;
  const server = createServer(async (_req, res) => {
    const capture = new Capture(
      limitBytes,
      { share: new Share(budget, 'a'), res },
      { ...usualPatience, ...how },
    );
    capture.attach(client.dispatch({ ...post, timeoutMs }, capture));
    captured.push(await capture.captured);
    if (how.unsettled) endings.push(capture.endedBeforeClient().finally(() => capture.letEnd()));
    streamed.push(capture.streamTo(res, capture.clientHeaders(createMemos())));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, captured, streamed, endings, budget };
}

/** The head of an answer; of its body nothing is read. */
async function headOf(t: Test, url: string): Promise<IncomingMessage> {
  const req = get(url, { agent: false });
  t.teardown(() => req.destroy());
  req.on('error', () => {});
  const [res] = (await once(req, 'response')) as [IncomingMessage];
  res.on('error', () => {});
  return res;
}

/** Not `once`, which would reject: an answer that is cut emits an error first. */
function closed(res: IncomingMessage): Promise<void> {
  return new Promise((resolve) => res.once('close', resolve));
}

t.test('a client that stalls: the rest is read and thrown away', async (t) => {
  const { upstream, sent } = await largeUpstream(t);
  const { url, captured, streamed } = await handingOn(t, upstream.origin, { stallMs: 50 });
  const res = await headOf(t, url);
  res.pause();
  t.match(captured, [{ kind: 'large', ending: { kind: 'answered', status: 200 } }]);
  await until('the upstream got rid of all of it', () => sent() === total);
  await streamed[0];
  res.resume();
  await closed(res);
  t.equal(res.complete, false, 'and the client does not take what it has for the whole');
});

t.test('a client that takes its time gets all of it', async (t) => {
  const { upstream, sent } = await largeUpstream(t);
  const { url } = await handingOn(t, upstream.origin, { stallMs: 60_000 });
  const res = await headOf(t, url);
  let got = 0;
  t.ok(sent() < total, 'the upstream is held up, not our memory');
  for await (const chunk of res) got += (chunk as Buffer).length;
  t.equal(got, total);
  t.ok(res.complete);
});

t.test('a client that takes it slowly is not taken for one that stalls', async (t) => {
  const { upstream } = await largeUpstream(t);
  const stallMs = 1_000;
  // So much was held when it turned out to be too large: more than the client takes in that time.
  const { url } = await handingOn(t, upstream.origin, { stallMs, limitBytes: 20_000_000 });
  const res = await headOf(t, url);
  let got = 0;
  const slowUntilMs = performance.now() + 2 * stallMs;
  for await (const chunk of res) {
    got += (chunk as Buffer).length;
    if (performance.now() < slowUntilMs) await setTimeout(10);
  }
  t.equal(got, total);
  t.ok(res.complete);
});

/** Takes a little now and then, so that it never stalls, for so long; then all the rest. Bytes that came. */
async function readSlowly(res: IncomingMessage, slowMs: number): Promise<number> {
  let got = 0;
  const untilMs = performance.now() + slowMs;
  for await (const chunk of res) {
    got += (chunk as Buffer).length;
    if (performance.now() < untilMs) await setTimeout(20);
  }
  return got;
}

const outlasts = "a steady slow client outlasts the upstream's time";
const tooSlow = 'a client that is slow for too long is cut, the upstream is not';

for (const unsettled of [false, true]) {
  const what = unsettled ? ', its record waiting for the end' : '';
  t.test(`${outlasts}${what}`, async (t) => {
    const { upstream } = await largeUpstream(t);
    const timeoutMs = 1_500;
    const { url, endings } = await handingOn(t, upstream.origin, { timeoutMs, unsettled });
    const res = await headOf(t, url);
    t.equal(await readSlowly(res, 2 * timeoutMs), total);
    t.ok(res.complete);
    for (const ending of endings) t.match(await ending, { kind: 'answered' });
  });

  t.test(`${tooSlow}${what}`, async (t) => {
    const { upstream, sent } = await largeUpstream(t);
    const limit = unsettled ? { heldUnsettledMs: 500 } : { heldMs: 500 };
    const { url, streamed, endings } = await handingOn(t, upstream.origin, { ...limit, unsettled });
    const res = await headOf(t, url);
    const read = readSlowly(res, 60_000).catch(() => {});
    await until('the upstream got rid of all of it', () => sent() === total);
    await streamed[0];
    for (const ending of endings) t.match(await ending, { kind: 'answered' }, 'and it counts as whole');
    await closed(res);
    await read;
    t.equal(res.complete, false);
  });
}

/** A guarded request for the large answer, through a sidecar. */
async function guardedLarge(t: Test, shape: Shape = {}) {
  const { upstream, sent } = await largeUpstream(t, shape);
  const running = await sidecar(t, { upstream: upstream.origin, config: 'defaults: { maxStoredBody: 1kb }' });
  const url = `${running.dataUrl}/a`;
  const req = get(url, { agent: false, method: 'POST', headers: { 'Idempotency-Key': 'k' } });
  req.on('error', () => {});
  t.teardown(() => req.destroy());
  const [res] = (await once(req, 'response')) as [IncomingMessage];
  res.on('error', () => {});
  const record = await recordOf(running.databaseUrl, 'k');
  t.match(record, { state: 'completed', status: 200, has_body: false }, 'settled before the first byte');
  t.equal(res.headers['idempotency-status'], 'executed');
  const retry = async () => {
    t.equal(problemOf(await ask(url, { key: 'k' })).code, 'response_not_retained');
    t.match(await recordOf(running.databaseUrl, 'k'), { state: 'completed', status: 200, has_body: false });
    t.equal(upstream.lines.length, 1, 'it ran once');
  };
  return { res, sent, retry };
}

t.test('a client that leaves in the midst of it', async (t) => {
  const { res, sent, retry } = await guardedLarge(t);
  await once(res, 'data');
  res.destroy();
  await until('the upstream could finish', () => sent() === total);
  await retry();
});

for (const chunked of [false, true]) {
  const how = chunked ? 'chunked' : 'with a length';
  t.test(
    `an upstream that cuts it in the middle, ${how}: the client is cut too, the record stays`,
    async (t) => {
      const { res, retry } = await guardedLarge(t, { cutAt: total / 2, chunked });
      let got = 0;
      res.on('data', (chunk: Buffer) => (got += chunk.length));
      await closed(res);
      t.ok(got < total);
      t.equal(res.complete, false, 'what is cut looks cut');
      await retry();
    },
  );
}

t.test('an HTTP/1.0 client, as nginx is by default, can tell a cut answer from a whole one', async (t) => {
  const { upstream } = await largeUpstream(t, { cutAt: total / 2 });
  const { dataUrl } = await sidecar(t, {
    upstream: upstream.origin,
    config: 'defaults: { maxStoredBody: 1kb }',
  });
  const request = 'POST /a HTTP/1.0\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n';
  const socket = await connect(t, Number(new URL(dataUrl).port));
  let answer = '';
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1')));
  // It is told by a reset.
  socket.on('error', () => {});
  const over = new Promise((resolve) => socket.once('close', resolve));
  socket.write(request);
  await over;
  t.match(answer, `Content-Length: ${total}\r\n`);
  t.match(answer, /Idempotency-Expires: /);
  t.ok(answer.length < total);
});
