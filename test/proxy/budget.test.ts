import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t from 'tap';
import type { Policy } from '../../src/core/policy.ts';
import { Attempts } from '../../src/proxy/attempts.ts';
import { readBody } from '../../src/proxy/body.ts';
import { Budget } from '../../src/proxy/budget.ts';
import { Capture } from '../../src/proxy/capture.ts';
import { Exchange } from '../../src/proxy/exchange.ts';
import { send } from '../../src/proxy/reply.ts';
import { ask } from '../helpers/client.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { until } from '../helpers/until.ts';
import { testUpstream } from '../helpers/upstream.ts';

t.test('new requests are refused while it is spent; what runs is not', async (t) => {
  const budget = new Budget(100);
  t.ok(budget.tryTake(60));
  t.notOk(budget.tryTake(41));
  t.ok(budget.tryTake(40));
  budget.take(500);
  t.notOk(budget.tryTake(1));
  budget.give(501);
  t.ok(budget.tryTake(1));
  t.equal(budget.heldBytes, 100);
});

t.test('an attempt holds its answer until it is closed, settled or not', async (t) => {
  const budget = new Budget(100);
  const attempts = new Attempts();
  for (const end of ['close', 'leaveUnsettled'] as const) {
    const attempt = attempts.open('i', 1_000);
    attempt.hold(budget, 30);
    attempt.hold(budget, 40);
    t.equal(budget.heldBytes, 70);
    attempts[end](attempt);
    attempts.close(attempt);
    attempt.hold(budget, 50);
    t.equal(budget.heldBytes, 0, end);
  }
});

t.test('an answer counts while it arrives', async (t) => {
  const budget = new Budget(1_000);
  const { attempt, capture } = held(budget);
  capture.onData(Buffer.alloc(100));
  capture.onData(Buffer.alloc(50));
  t.equal(budget.heldBytes, 150);
  attempt.letGo();
  t.equal(budget.heldBytes, 0);
});

function held(budget: Budget) {
  const attempt = new Attempts().open('i', 1_000);
  return { attempt, capture: new Capture(1_000, (bytes) => attempt.hold(budget, bytes)) };
}

t.test('a body that finds no room is not read on', async (t) => {
  const budget = new Budget(10_000);
  let held = 0;
  const memory = { tryHold: (bytes: number) => budget.tryTake(bytes) && (held += bytes) >= 0 };
  const server = createServer(async (req, res) => {
    const read = await readBody(req, 1_000_000, memory);
    budget.give(held);
    held = 0;
    res.setHeader('Connection', 'close');
    res.end(read.kind);
    req.resume();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  t.equal(String((await ask(url, { body: 'x'.repeat(9_000) })).body), 'body');
  t.equal(String((await ask(url, { body: 'x'.repeat(11_000) })).body), 'overloaded');
  t.equal(budget.heldBytes, 0);
});

t.test('an empty body finds no room either: its answer would need some', async (t) => {
  const server = createServer(async (req, res) => {
    const { kind } = await readBody(req, 1_000, { tryHold: () => false });
    res.end(kind);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  t.equal(String((await ask(url)).body), 'overloaded');
});

t.test('an answer counts until its client has read it, and one that reads nothing is cut', async (t) => {
  const bytes = 30_000_000;
  const budget = new Budget(1_000);
  const policy = {} as Policy;
  const server = createServer((req, res) => {
    const exchange = new Exchange(req, res, { policy, requestId: 'r', budget });
    const body = Buffer.alloc(bytes);
    if (req.url === '/unread') {
      res.end(body);
      exchange.holdUntilTaken(bytes, 50);
      return;
    }
    const answer = { kind: 'answer', status: 200, headers: [], retainUntilMs: null } as const;
    void send(exchange, { ...answer, body, idempotency: 'replayed' });
    t.equal(budget.heldBytes, bytes, 'on its way');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const client = connect(port, '127.0.0.1');
  t.teardown(() => client.destroy());
  // Two at once: of the second no byte is under way when the connection ends.
  client.write('GET /unread HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(2));
  await until('both are held', () => budget.heldBytes === 2 * bytes);
  t.equal(budget.tryTake(1), false, 'nothing new meanwhile');
  await until('it is cut', () => budget.heldBytes === 0);
  const { body } = await ask(`http://127.0.0.1:${port}/read`);
  t.equal(body.length, bytes);
  await until('it was read', () => budget.heldBytes === 0);
});

t.test('duplicates that wait keep no body in memory', async (t) => {
  let finish = () => {};
  const upstream = await testUpstream(t, (_, res) => {
    finish = () => res.end('ran');
  });
  const { dataUrl } = await sidecar(t, { upstream: upstream.url });
  const body = 'x'.repeat(1_000_000);
  const asked = () => ask(`${dataUrl}/x`, { key: 'k', body, headers: { 'Content-Type': 'text/plain' } });
  const all = [asked()];
  await upstream.received(1);
  const waiting = 40;
  let read = 0;
  const onRequest = (message: unknown) => {
    (message as { request: IncomingMessage }).request.once('end', () => {
      read += 1;
    });
  };
  subscribe('http.server.request.start', onRequest);
  t.teardown(() => unsubscribe('http.server.request.start', onRequest));
  for (let i = 0; i < waiting; i += 1) all.push(asked());
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const heldMb = () => {
    collect();
    return process.memoryUsage().arrayBuffers / 1_000_000;
  };
  await until('all bodies have come', () => read === waiting);
  await until('they wait without', () => heldMb() < 10, 8_000).catch(() => null);
  t.ok(heldMb() < 10, `${waiting} waiters of 1 MB hold ${Math.round(heldMb())} MB`);
  t.equal(upstream.executions.length, 1);
  finish();
  for (const { status } of await Promise.all(all)) t.equal(status, 200);
});
