import { setTimeout } from 'node:timers/promises';
import t from 'tap';
import { CallClock } from '../../src/upstream/call-clock.ts';

const longMs = 60_000;

function over(limitMs: number, maxHeldMs: number) {
  let end = () => {};
  const isOver = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { isOver, clock: new CallClock(limitMs, end, maxHeldMs) };
}

t.test('the time it was given, and what is left of it after a pause', async () => {
  const { clock, isOver } = over(50, longMs);
  clock.start();
  clock.hold();
  clock.hold();
  clock.letGo();
  clock.letGo();
  await isOver;
});

t.test('a pause without end is an end', async () => {
  const { clock, isOver } = over(longMs, 50);
  clock.start();
  clock.hold();
  await isOver;
});

t.test('many pauses count together', async (t) => {
  const { clock, isOver } = over(longMs, 200);
  clock.start();
  let pauses = 0;
  let isRunning = true;
  void isOver.then(() => {
    isRunning = false;
  });
  while (isRunning) {
    clock.hold();
    pauses++;
    await setTimeout(20);
    clock.letGo();
  }
  t.ok(pauses > 1, 'none of them was as long as that');
});

t.test('stopped, also in a pause', async (t) => {
  let ends = 0;
  const end = () => {
    ends++;
  };
  const running = new CallClock(10, end, 10);
  running.start();
  running.stop();
  const held = new CallClock(10, end, 10);
  held.start();
  held.hold();
  held.stop();
  await setTimeout(50);
  t.equal(ends, 0);
});

t.test('half of it for what is not sent, all of it for what is', async (t) => {
  const beganMs = performance.now();
  const waiting = over(4_000, longMs);
  waiting.clock.start();
  const running = over(400, longMs);
  running.clock.start();
  running.clock.sent();
  await running.isOver;
  t.ok(performance.now() - beganMs >= 390);
  await waiting.isOver;
  t.ok(performance.now() - beganMs < 3_900);
});
