import { randomUUID } from 'node:crypto';
import t from 'tap';
import { Attempts } from '../../src/proxy/attempts.ts';
import type { Reply } from '../../src/proxy/reply.ts';
import { someId } from '../store/samples.ts';

const reply: Reply = { kind: 'problem', code: 'in_progress' };
const soon = () => new Promise(setImmediate);

t.test('there from its opening until it is closed', async (t) => {
  const attempts = new Attempts();
  const attempt = attempts.open('instance', 1_000);
  t.equal(attempts.get(attempt.id), attempt);
  attempts.close(attempt);
  t.equal(attempts.get(attempt.id), undefined);
  t.equal(attempts.unsent.size, 0, 'which is no proof that nothing was sent');
});

t.test('at the end of a drain nobody waits for any, and none counts as unsent', async (t) => {
  const attempts = new Attempts();
  const closed = attempts.open('instance', 1_000);
  const abandoned = [attempts.open('instance', 1_000), attempts.open('instance', 1_000)];
  let isIdle = false;
  const idle = attempts.idle().then(() => (isIdle = true));
  attempts.close(closed);
  await soon();
  t.equal(isIdle, false);
  attempts.abandon();
  await idle;
  t.equal(attempts.size, 0);
  for (const { id } of abandoned) t.equal(attempts.get(id), undefined);
  t.equal(attempts.unsent.size, 0);
  await attempts.idle();
});

t.test('whoever waits is told once; whoever comes later must look at the record', async (t) => {
  const attempt = new Attempts().open('instance', 1_000);
  const waiting = [attempt.concluded().reply, attempt.concluded().reply];
  t.equal(attempt.isConcluded, false);
  attempt.conclude(() => reply);
  t.same(await Promise.all(waiting), [reply, reply]);
  t.equal(attempt.isConcluded, true);
  attempt.conclude(() => reply);
});

t.test('past its deadline it must not start', async (t) => {
  const attempts = new Attempts();
  t.equal(attempts.open('instance', 60_000).isOver, false);
  t.equal(attempts.open('instance', 0).isOver, true);
  const suspended = attempts.open('instance', 60_000);
  const { now } = Date;
  t.teardown(() => (Date.now = now));
  Date.now = () => now() + 60_000;
  t.equal(suspended.isOver, true, 'monotonic time stood still, the wall clock did not');
});

t.test('given up unsent: remembered with its key and its instance, until it is dropped', async (t) => {
  const attempts = new Attempts();
  const attempt = attempts.open('instance', 1_000);
  const { scope, key } = someId();
  attempts.closeUnsent(attempt, { scope, key });
  t.equal(attempts.size, 0);
  t.match(attempts.unsent.all(), [
    { scope, key, attempt: attempt.id, instance: 'instance', sinceMs: Number },
  ]);
  attempts.unsent.drop(attempt.id);
  t.same(attempts.unsent.all(), []);
});

t.test('what does not fit in is not remembered: it becomes unknown', async (t) => {
  const { unsent } = new Attempts();
  const some = () => ({ ...someId(), attempt: randomUUID(), instance: 'instance' });
  const first = some();
  unsent.add(first);
  for (let added = 1; added < 10_100; added += 1) unsent.add(some());
  t.equal(unsent.size, 10_000);
  t.match(unsent.all()[0], first);
  unsent.drop(first.attempt);
  unsent.add(some());
  t.equal(unsent.size, 10_000, 'there is room again');
});
