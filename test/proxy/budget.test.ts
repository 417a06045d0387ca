import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t, { type Test } from 'tap';
import type { Policy } from '../../src/core/policy.ts';
import { Arriving } from '../../src/proxy/arriving.ts';
import { type Attempt, Attempts } from '../../src/proxy/attempts.ts';
import { readBody } from '../../src/proxy/body.ts';
import { Budget } from '../../src/proxy/budget.ts';
import { Capture } from '../../src/proxy/capture.ts';
import { Exchange } from '../../src/proxy/exchange.ts';
import { send } from '../../src/proxy/reply.ts';
import { RequestMemory } from '../../src/proxy/request-memory.ts';
import { networkOf, Share } from '../../src/proxy/share.ts';
import { ask } from '../helpers/client.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { until } from '../helpers/until.ts';
import { testUpstream } from '../helpers/upstream.ts';
import { someId } from '../store/samples.ts';

/** By `performance.now()`, which begins at 0 with the process: 0 is not long ago. */
const longAgoMs = -60_000;

t.test('new requests are refused while three quarters of it are held; what runs is not', async (t) => {
  const budget = new Budget(400);
  t.ok(budget.tryTake(60, 'a'));
  t.notOk(budget.tryTake(241, 'b'), 'not even of what is there');
  t.ok(budget.tryTake(140, 'b'));
  budget.take(500, 'a');
  t.notOk(budget.tryTake(0, 'c'));
  budget.give(501, 'a');
  t.ok(budget.tryTake(1, 'c'));
  t.equal(budget.heldBytes, 200);
});

t.test('an address gets three times what is free, so that something is left for others', async (t) => {
  const budget = new Budget(400);
  let took = 0;
  while (budget.tryTake(1, 'greedy')) took += 1;
  t.equal(took, 225, 'alone three quarters of what new requests may have');
  while (budget.tryTake(1, 'second')) took += 1;
  t.ok(budget.tryTake(10, 'modest'), 'one that holds nothing finds room');
  budget.give(25, 'greedy');
  t.notOk(budget.tryTake(1, 'greedy'), 'while memory is short');
  budget.give(200, 'greedy');
  t.ok(budget.tryTake(50, 'greedy'), 'and not for longer');
});

t.test('answers that the clients of an address do not take make room in its share', async (t) => {
  const budget = new Budget(400);
  const dropped: string[] = [];
  for (const address of ['other', 'busy']) {
    budget.take(100, address);
    const drop = () => {
      budget.give(100, address);
      dropped.push(address);
    };
    budget.leave({ address, tookAtMs: longAgoMs, drop });
  }
  budget.take(60, 'busy');
  t.ok(budget.tryTake(20, 'busy'));
  t.same(dropped, ['busy'], 'not those of others');
});

t.test('addresses of one network count as one', async (t) => {
  t.equal(networkOf('192.0.2.1'), '192.0.2.1');
  t.equal(networkOf('::ffff:192.0.2.1'), '::ffff:192.0.2.1');
  t.equal(networkOf('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2');
  t.equal(networkOf('2001:db8:1:2::9'), '2001:db8:1:2');
  t.equal(networkOf('2001:db8::9'), '2001:db8:0:0');
  t.equal(networkOf('::1'), '0:0:0:0');
});

t.test('an attempt holds its answer until it is closed, sent or not', async (t) => {
  const budget = new Budget(100);
  const attempts = new Attempts();
  const ends = {
    closed: (attempt: Attempt) => attempts.close(attempt),
    'closed unsent': (attempt: Attempt) => attempts.closeUnsent(attempt, someId()),
  };
  for (const [how, end] of Object.entries(ends)) {
    const attempt = attempts.open('i', 1_000);
    const answer = new Arriving(budget, () => {});
    attempt.keep(answer);
    t.ok(answer.add(30));
    t.ok(answer.add(40));
    t.equal(budget.heldBytes, 70);
    end(attempt);
    attempts.close(attempt);
    answer.add(50);
    t.equal(budget.heldBytes, 0, how);
    const late = new Arriving(budget, () => {});
    attempt.keep(late);
    late.add(50);
    t.equal(budget.heldBytes, 0, 'nor what comes when it is over');
  }
});

t.test('while it is spent answers wait in their upstreams, but for one; each gets its turn', async (t) => {
  const budget = new Budget(100);
  const went: string[] = [];
  const [a, b, c] = ['a', 'b', 'c'].map((name) => new Arriving(budget, () => went.push(name))) as [
    Arriving,
    Arriving,
    Arriving,
  ];
  t.ok(a.add(60));
  t.ok(budget.hasRoom);
  t.ok(b.add(60), 'the first that finds nothing left goes on');
  t.notOk(budget.hasRoom, 'nothing more is sent');
  t.notOk(a.add(10));
  t.notOk(c.add(10));
  t.ok(b.add(500), 'to its end');
  t.same(went, []);
  b.close();
  t.same(went, ['a', 'c'], 'once there is room all go on');
  t.ok(a.add(20));
  t.ok(a.add(20));
  t.notOk(c.add(10));
  budget.take(50, 'x');
  a.close();
  t.same(went, ['a', 'c', 'c']);
  c.close();
  budget.give(50, 'x');
  t.equal(budget.heldBytes, 0);
});

t.test('when one ends and nothing is free the next goes on', async (t) => {
  const budget = new Budget(100);
  budget.take(100, 'x');
  const went: string[] = [];
  const [a, b, c] = ['a', 'b', 'c'].map((name) => new Arriving(budget, () => went.push(name))) as [
    Arriving,
    Arriving,
    Arriving,
  ];
  t.same([a.add(1), b.add(1), c.add(1)], [true, false, false]);
  a.close();
  t.same(went, ['b']);
  t.notOk(c.add(1), 'one at a time');
  b.close();
  t.same(went, ['b', 'c']);
  c.close();
  t.equal(budget.heldBytes, 100);
});

t.test('those who have taken nothing for the longest are cut when it is spent', async (t) => {
  const budget = new Budget(100);
  const dropped: string[] = [];
  const leaving = (name: string, bytes: number, tookAtMs = longAgoMs) => {
    const one = {
      address: 'x',
      tookAtMs,
      drop: () => {
        budget.give(bytes, 'x');
        dropped.push(name);
      },
    };
    budget.take(bytes, 'x');
    budget.leave(one);
    return one;
  };
  const first = leaving('first', 20);
  leaving('second', 20);
  leaving('third', 20);
  budget.leave(first);
  const answer = new Arriving(budget, () => {});
  t.ok(answer.add(50), 'there is room for it');
  t.same(dropped, ['second'], 'no more are cut than must be');
  t.ok(budget.tryTake(1, 'new'), 'also for a new request');
  t.same(dropped, ['second', 'third']);
  answer.close();
  leaving('busy', 50, performance.now());
  budget.left(first);
  t.notOk(budget.tryTake(10, 'new'), 'but not those who took something a moment ago');
  t.equal(dropped.length, 2);
});

t.test('an answer counts while it arrives', async (t) => {
  const budget = new Budget(1_000);
  const attempt = new Attempts().open('i', 1_000);
  const capture = new Capture(1_000, { share: new Share(budget, 'a'), res: {} as ServerResponse });
  attempt.keep(capture.arriving);
  capture.onData(Buffer.alloc(100));
  capture.onData(Buffer.alloc(50));
  t.equal(budget.heldBytes, 150);
  attempt.letGo();
  t.equal(budget.heldBytes, 0);
});

t.test('a body that finds no room is not read on', async (t) => {
  const budget = new Budget(20_000);
  let held = 0;
  const memory = { tryHold: (bytes: number) => budget.tryTake(bytes, 'a') && (held += bytes) >= 0 };
  const server = createServer(async (req, res) => {
    const read = await readBody(req, 1_000_000, memory);
    if (held > 0) budget.give(held, 'a');
    held = 0;
    res.setHeader('Connection', 'close');
    res.end(read.kind);
    req.resume();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  t.equal(String((await ask(url, { body: 'x'.repeat(9_000) })).body), 'body');
  t.equal(String((await ask(url, { body: 'x'.repeat(16_000) })).body), 'overloaded');
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

t.test('an answer counts until its client has read it', async (t) => {
  const bytes = 30_000_000;
  const budget = new Budget(100_000_000);
  const { port } = await answering(t, budget, bytes);
  const client = connect(port, '127.0.0.1');
  t.teardown(() => client.destroy());
  // Two at once: of the second no byte is under way when the connection ends.
  client.write('GET /unread HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(2));
  const kernelBytes = 8_000_000;
  await until('both are held', () => budget.heldBytes > 2 * bytes - kernelBytes);
  t.equal(budget.tryTake(20_000_000, 'a'), false, 'nothing new meanwhile');
  client.destroy();
  await until('nothing is held', () => budget.heldBytes === 0);
  const { body } = await ask(`http://127.0.0.1:${port}/read`);
  t.equal(body.length, bytes);
  await until('it was read', () => budget.heldBytes === 0);
});

/** A server whose answers all have so many bytes. */
async function answering(t: Test, budget: Budget, bytes: number): Promise<{ port: number }> {
  const server = createServer((req, res) => {
    const exchange = new Exchange(req, res, { policy: {} as Policy, requestId: 'r', budget });
    const answer = { kind: 'answer', status: 200, headers: [], retainUntilMs: null } as const;
    const isRepeated = true;
    void send(exchange, { ...answer, isRepeated, body: Buffer.alloc(bytes), idempotency: 'replayed' });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return server.address() as AddressInfo;
}

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

t.test('a request counts until it is done, also when its client has left', (t) => {
  const budget = new Budget(100_000);
  const req = { url: '/', rawHeaders: [], socket: {} } as unknown as IncomingMessage;
  const memory = RequestMemory.tryTake(new Share(budget, 'a'), req);
  const res = { headersSent: false } as ServerResponse;
  const exchange = new Exchange(req, res, { policy: {} as Policy, requestId: 'r', budget, memory });
  memory?.letGo();
  t.ok(budget.heldBytes > 0);
  exchange.done();
  t.equal(budget.heldBytes, 0);
  t.end();
});
