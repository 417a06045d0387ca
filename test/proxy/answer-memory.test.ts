import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import t, { type Test } from 'tap';
import { createMemos } from '../../src/core/memos.ts';
import { Arriving } from '../../src/proxy/arriving.ts';
import { Budget } from '../../src/proxy/budget.ts';
import { Capture } from '../../src/proxy/capture.ts';
import { Share } from '../../src/proxy/share.ts';
import { UpstreamClient } from '../../src/upstream/client.ts';
import { ask } from '../helpers/client.ts';
import { until } from '../helpers/until.ts';
import { testUpstream } from '../helpers/upstream.ts';
import { post, target } from '../upstream/send.ts';

/** Whatever upstreams and clients do, no more is held than the budget, one answer, and a chunk for each connection. */

const limitBytes = 4_000_000;
const connections = 20;
/** What Node may have read of a connection at once (src/upstream/hold.ts). */
const chunkBytes = 131_072;

/** The most that was ever held. */
class Watched extends Budget {
  most = 0;

  override arrive(...args: Parameters<Budget['arrive']>): boolean {
    const goesOn = super.arrive(...args);
    this.most = Math.max(this.most, this.heldBytes);
    return goesOn;
  }

  override leave(...args: Parameters<Budget['leave']>): void {
    super.leave(...args);
    this.squeeze();
    this.most = Math.max(this.most, this.heldBytes);
  }
}

interface Scene {
  readonly answerBytes: number;
  readonly maxStoredBytes: number;
  /** A large answer is not handed on before `settle` says so. */
  readonly waits?: boolean;
}

/** A server that keeps each answer of the upstream whole, and hands on those that are too large for that. */
async function keeping(t: Test, { answerBytes, maxStoredBytes, waits = false }: Scene) {
  const upstream = await testUpstream(t, (_one, res) => void res.end(Buffer.alloc(answerBytes, 'x')));
  const client = new UpstreamClient({ ...target(upstream.url), connections });
  t.teardown(() => client.destroy());
  const budget = new Watched(limitBytes);
  const settle: (() => void)[] = [];
  const kinds: string[] = [];
  const handOn = async (res: ServerResponse) => {
    const capture = new Capture(maxStoredBytes, { share: new Share(budget, 'a'), res });
    capture.attach(client.dispatch({ ...post, timeoutMs: 60_000 }, capture));
    const captured = await capture.captured;
    kinds.push(captured.kind);
    const stream = () => capture.streamTo(res, capture.clientHeaders(createMemos()));
    if (captured.kind === 'large') return waits ? void settle.push(() => void stream()) : stream();
    settle.push(() => {
      capture.arriving.close();
      res.end(String(captured.body.length));
    });
  };
  const server = createServer((_req, res) => void handOn(res)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { port, upstream, budget, settle, kinds };
}

t.test('answers that are kept whole wait for each other, and each gets through', async (t) => {
  const answerBytes = 900_000;
  const { port, upstream, budget, settle } = await keeping(t, { answerBytes, maxStoredBytes: 1_000_000 });
  const answers = Array.from({ length: connections }, () => ask(`http://127.0.0.1:${port}/`));
  await upstream.received(connections);
  for (let settled = 0; settled < connections; settled += 1) {
    // The store takes one after the other, and none before memory is spent.
    await until('the next has come whole', () => settle.length > 0);
    if (settled === 0) await until('memory is spent', () => !budget.hasRoom);
    settle.shift()?.();
  }
  for (const { body } of await Promise.all(answers)) t.equal(body.toString(), String(answerBytes));
  t.ok(budget.most > limitBytes / 2, 'much was held');
  const bound = limitBytes + answerBytes + connections * chunkBytes;
  t.ok(budget.most <= bound, `${budget.most} of ${bound} bytes were held`);
  t.equal(budget.heldBytes, 0);
});

t.test('large answers that nobody reads count, and their clients are cut when it is spent', async (t) => {
  const answerBytes = 30_000_000;
  const { port, upstream, budget, kinds } = await keeping(t, { answerBytes, maxStoredBytes: 1_000_000 });
  const sockets: Socket[] = [];
  for (let i = 0; i < connections; i += 1) {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    t.teardown(() => socket.destroy());
    socket.pause();
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    sockets.push(socket);
  }
  await upstream.received(connections);
  await until('all have begun', () => kinds.length === connections);
  const bound = limitBytes + connections * chunkBytes;
  t.ok(budget.most <= bound, `${budget.most} of ${bound} bytes were held`);
  t.ok(budget.most > 1_000_000);
  const other = new Arriving(budget, () => {});
  t.ok(other.add(limitBytes), 'what has to be kept finds room at once');
  other.close();
  for (const socket of sockets) socket.destroy();
  await until('nothing is held', () => budget.heldBytes === 0);
});

t.test('a large answer counts while it waits for the store', async (t) => {
  const answerBytes = 3_000_000;
  const maxStoredBytes = 1_000_000;
  const { port, budget, settle } = await keeping(t, { answerBytes, maxStoredBytes, waits: true });
  const answer = ask(`http://127.0.0.1:${port}/`);
  await until('its beginning is here', () => settle.length > 0);
  t.ok(budget.heldBytes > maxStoredBytes);
  settle[0]?.();
  t.equal((await answer).body.length, answerBytes);
  await until('nothing is held', () => budget.heldBytes === 0);
});
