import t from 'tap';
import { Attempts } from '../../src/proxy/attempts.ts';
import type { Reply } from '../../src/proxy/reply.ts';

const reply: Reply = { kind: 'problem', code: 'in_progress' };
const soon = () => new Promise(setImmediate);

t.test('known from its opening until the store has settled it', async (t) => {
  const attempts = new Attempts();
  const attempt = attempts.open('instance', 1_000);
  t.equal(attempts.get(attempt.id), attempt);
  t.equal(attempts.isKnown(attempt.id), true);
  attempts.close(attempt);
  t.equal(attempts.get(attempt.id), undefined);
  t.equal(attempts.isKnown(attempt.id), false);
});

t.test('one that the store never settled stays known, though nobody waits for it', async (t) => {
  const attempts = new Attempts();
  const unsettled = attempts.open('instance', 1_000);
  const abandoned = [attempts.open('instance', 1_000), attempts.open('instance', 1_000)];
  let isIdle = false;
  const idle = attempts.idle().then(() => (isIdle = true));
  attempts.leaveUnsettled(unsettled);
  await soon();
  t.equal(isIdle, false);
  attempts.abandon();
  await idle;
  t.equal(attempts.size, 0);
  for (const attempt of [unsettled, ...abandoned]) t.equal(attempts.isKnown(attempt.id), true);
  await attempts.idle();
});

t.test('whoever waits is told once; whoever comes later must look at the record', async (t) => {
  const attempt = new Attempts().open('instance', 1_000);
  const waiting = [attempt.concluded(), attempt.concluded()];
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
