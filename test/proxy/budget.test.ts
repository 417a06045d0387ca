import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { Attempts } from '../../src/proxy/attempts.ts';
import { readBody } from '../../src/proxy/body.ts';
import { Budget } from '../../src/proxy/budget.ts';
import { ask } from '../helpers/client.ts';

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
    attempt.hold(budget, 70);
    t.equal(budget.heldBytes, 70);
    attempts[end](attempt);
    attempts.close(attempt);
    t.equal(budget.heldBytes, 0, end);
  }
});

t.test('a body that finds no room is not read on', async (t) => {
  const budget = new Budget(10_000);
  let held = 0;
  const memory = { tryHold: (bytes: number) => budget.tryTake(bytes) && (held += bytes) > 0 };
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
