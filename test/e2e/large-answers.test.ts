import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import t, { type Test } from 'tap';
import { type RequestDone, requestDone } from '../../src/events.ts';
import { ask, problemOf } from '../helpers/client.ts';
import { testDatabase } from '../helpers/postgres.ts';
import { type RawConnection, RawUpstream } from '../helpers/raw-upstream.ts';
import { recordOf } from '../helpers/records.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { tcpProxy } from '../helpers/tcp-proxy.ts';
import { until } from '../helpers/until.ts';
import { testUpstream } from '../helpers/upstream.ts';

/** An answer over `maxStoredBody` that does not end its key: what its head says counts only once its last byte is there. */

const total = 3_000_000;
const half = Buffer.alloc(total / 2, 'x');

const framings = {
  length: { fields: `Content-Length: ${total}\r\n`, last: half },
  chunked: {
    fields: 'Transfer-Encoding: chunked\r\n',
    last: Buffer.concat([Buffer.from(`${half.length.toString(16)}\r\n`), half, Buffer.from('\r\n0\r\n\r\n')]),
  },
  close: { fields: '', last: half },
};

interface Scene {
  readonly framing?: keyof typeof framings;
  readonly status?: string;
  readonly config?: string;
  /** Its head ends the key. */
  readonly settled?: boolean;
  readonly databaseUrl?: string;
}

/** A guarded request whose answer has come half way. A further request for the same key is answered at once. */
async function halfWay(t: Test, scene: Scene) {
  const { framing = 'length', status = '500 Oops', config = '', settled = false, databaseUrl } = scene;
  const { fields, last } = framings[framing];
  const upstream = await RawUpstream.listen({
    requested: ({ socket, index }, nth) => {
      if (index + nth > 0) return void socket.write('HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok');
      socket.write(`HTTP/1.1 ${status}\r\n${fields}\r\n`);
      if (framing === 'chunked') socket.write(`${half.length.toString(16)}\r\n`);
      socket.write(half);
      if (framing === 'chunked') socket.write('\r\n');
    },
  });
  t.teardown(() => upstream.close());
  const running = await sidecar(t, {
    upstream: upstream.origin,
    config: config === '' ? 'defaults: { inFlight: { wait: 0s } }' : config,
    ...(databaseUrl === undefined ? {} : { databaseUrl }),
  });
  const done: RequestDone[] = [];
  t.teardown(requestDone.subscribe((one) => done.push(one)));
  const url = `${running.dataUrl}/a`;
  const req = get(url, { agent: false, method: 'POST', headers: { 'Idempotency-Key': 'k' } });
  req.on('error', () => {});
  t.teardown(() => req.destroy());
  const [res] = (await once(req, 'response')) as [IncomingMessage];
  res.on('error', () => {});
  t.equal(res.statusCode, Number(status.slice(0, 3)), "the client gets the upstream's status");
  t.equal(res.headers['idempotency-status'], settled ? 'executed' : 'in_progress', 'and what is settled');
  const record = () => recordOf(running.databaseUrl, 'k');
  const closed = new Promise<void>((resolve) => res.once('close', resolve));
  const retry = () => ask(url, { key: 'k' });
  const { socket } = upstream.connections[0] as RawConnection;
  return { upstream, running, res, closed, record, retry, done, socket, last };
}

/** All that is left of it, read to its end. */
async function readAll(res: IncomingMessage): Promise<number> {
  let got = 0;
  for await (const chunk of res) got += (chunk as Buffer).length;
  return got;
}

function reset(socket: Socket): void {
  socket.resetAndDestroy();
}

for (const framing of ['length', 'chunked', 'close'] as const) {
  t.test(`500, ${framing}: broken in the middle, the key is unknown and never free`, async (t) => {
    const { upstream, res, closed, record, retry, done, socket } = await halfWay(t, { framing });
    t.match(await record(), { state: 'in_progress' });
    t.equal(problemOf(await retry()).code, 'in_progress', 'no retry runs while the first still answers');
    res.resume();
    reset(socket);
    await closed;
    t.equal(res.complete, false, 'what is cut looks cut');
    t.match(await record(), { state: 'unknown', status: 500 });
    t.equal(problemOf(await retry()).code, 'outcome_unknown');
    t.equal(upstream.lines.length, 1, 'it ran once');
    const first = await until('it is done', () => done.find(({ verdict }) => verdict === 'execute'));
    t.match(first, { outcome: 'unknown', status: 500, error: { code: String } });
  });

  t.test(`500, ${framing}: whole, and then the key is free`, async (t) => {
    const { upstream, res, record, retry, done, socket, last } = await halfWay(t, { framing });
    t.match(await record(), { state: 'in_progress' });
    if (framing === 'close') socket.end(last);
    else socket.write(last);
    t.equal(await readAll(res), total);
    t.match(await record(), { state: 'failed_retryable', status: 500 }, 'before the client has the end');
    const first = await until('it is done', () => done.find(({ verdict }) => verdict === 'execute'));
    t.match(first, { outcome: 'release', status: 500, error: null });
    t.match((await retry()).headers, { 'idempotency-status': 'executed' }, 'a retry runs');
    t.equal(upstream.lines.length, 2);
  });
}

t.test('a client that leaves: the rest is read without it, then the key is settled', async (t) => {
  const { res, closed, record, done, socket, last } = await halfWay(t, {});
  res.destroy();
  await closed;
  socket.write(last.subarray(0, 1_000_000));
  t.match(await record(), { state: 'in_progress' }, 'not by the client');
  await new Promise((resolve) => socket.write(last.subarray(1_000_000), resolve));
  await until('it is settled', async () => (await record())?.state === 'failed_retryable');
  const first = await until('it is done', () => done[0]);
  t.match(first, { verdict: 'execute', outcome: 'release' });
});

for (const [how, end, code] of [
  ['whole', (socket: Socket, last: Buffer) => void socket.write(last), 'in_progress'],
  ['broken', reset, 'upstream_failed'],
] as const) {
  t.test(`who waits for it is answered at its end: ${how}`, async (t) => {
    const { running, res, retry, socket, last, upstream } = await halfWay(t, {
      config: 'defaults: { inFlight: { wait: 1m } }',
    });
    const waiting = retry();
    // It has got as far as waiting: others have since gone the same way and back.
    for (const body of ['1', '2', '3'])
      t.equal(problemOf(await ask(`${running.dataUrl}/a`, { key: 'k', body })).code, 'key_reused');
    res.resume();
    end(socket, last);
    t.equal(problemOf(await waiting).code, code);
    t.equal(upstream.lines.length, 1, 'and never runs');
  });
}

t.test('payments: unknown, and only after the last byte', async (t) => {
  const config = 'defaults: { outcomes: payments, inFlight: { wait: 0s } }';
  const { upstream, res, record, retry, socket, last } = await halfWay(t, { config });
  t.match(await record(), { state: 'in_progress' });
  t.equal(problemOf(await retry()).code, 'in_progress');
  socket.write(last);
  t.equal(await readAll(res), total);
  t.match(await record(), { state: 'unknown', status: 500, last_error: 'upstream answered 500' });
  t.equal(problemOf(await retry()).code, 'outcome_unknown');
  t.equal(upstream.lines.length, 1);
});

t.test('a drain that ends first cuts it, and the key is unknown', async (t) => {
  const { running, res, closed, record } = await halfWay(t, { config: 'drain: { delay: 0s, max: 1s }' });
  res.resume();
  await running.drain(true);
  await closed;
  t.match(await record(), { state: 'unknown', status: 500 });
});

t.test(
  'an answer that ends its key and then breaks off: completed, and the record and the log say so',
  async (t) => {
    const { res, closed, record, retry, done, socket } = await halfWay(t, {
      status: '201 Created',
      settled: true,
    });
    res.resume();
    socket.resetAndDestroy();
    await closed;
    t.notOk(res.complete, 'it looks cut to its client');
    const noted = await until('it is noted', async () => {
      const one = await record();
      return one?.last_error === null ? null : one;
    });
    t.match(noted, { state: 'completed', status: 201, last_error: /^the answer broke off: / });
    const first = await until('it is done', () => done[0]);
    t.match(first, { verdict: 'execute', outcome: 'store', error: Error });
    t.equal(problemOf(await retry()).code, 'response_not_retained');
  },
);

t.test(
  'it breaks off while the store is away: logged at once, and noted once the store is back',
  async (t) => {
    const { url } = await testDatabase(t);
    const lane = await tcpProxy(t, { host: '127.0.0.1', port: Number(new URL(url).port) });
    const databaseUrl = lane.through(url);
    const { res, closed, done, socket } = await halfWay(t, {
      status: '201 Created',
      settled: true,
      databaseUrl,
    });
    res.resume();
    lane.refuse(true);
    lane.cutAll();
    socket.resetAndDestroy();
    await closed;
    const first = await until('it is done', () => done[0]);
    t.match(first, { verdict: 'execute', outcome: 'store', error: Error });
    t.match(await recordOf(url, 'k'), { state: 'completed', last_error: null });
    lane.refuse(false);
    await until('it is noted', async () =>
      (await recordOf(url, 'k'))?.last_error?.startsWith('the answer broke'),
    );
  },
);

t.test('a client that does not read makes way for other keys, and its own is settled', async (t) => {
  const upstream = await testUpstream(t, ({ key }, res) => {
    res.writeHead(201).end(key === 'large' ? Buffer.alloc(30_000_000, 'x') : 'ok');
  });
  const config = 'upstream: { connections: 1 }';
  const { dataUrl, databaseUrl } = await sidecar(t, { upstream: upstream.url, config });
  const headers = { 'Idempotency-Key': 'large' };
  const req = get(`${dataUrl}/a`, { agent: false, method: 'POST', headers });
  t.teardown(() => req.destroy());
  const [res] = (await once(req, 'response')) as [IncomingMessage];
  const cut = once(res, 'error');
  t.match(await ask(`${dataUrl}/a`, { key: 'other', body: '{}' }), { status: 201 });
  res.resume();
  await cut;
  t.match(await recordOf(databaseUrl, 'large'), { state: 'completed', status: 201 });
  t.equal(upstream.countOf('large'), 1);
});
