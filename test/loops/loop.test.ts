import t from 'tap';
import { type LoopDone, loopDone } from '../../src/events.ts';
import { type Counts, Loop, type LoopOptions } from '../../src/loops/loop.ts';

/** A loop with short times, and what its passes did. The name keeps other tests' loops apart. */
function looping(name: string, runOnce: LoopOptions['runOnce'], rest: Partial<LoopOptions> = {}) {
  const done: LoopDone[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  const end = loopDone.subscribe((one) => {
    if (one.loop !== name) return;
    done.push(one);
    for (const { count, resolve } of waiting) if (done.length >= count) resolve();
  });
  const passes = (count: number) =>
    new Promise<void>((resolve) => {
      if (done.length >= count) resolve();
      waiting.push({ count, resolve });
    });
  const loop = new Loop({ name, everyMs: 1, firstMs: 0, retryMs: 1, runOnce, ...rest });
  return { loop, done, passes, end };
}

t.test('passes come one after the other, and their counts are published', async (t) => {
  let running = 0;
  let most = 0;
  const { loop, done, passes, end } = looping('in turn', async () => {
    most = Math.max(most, ++running);
    await new Promise(setImmediate);
    running -= 1;
    return { swept: 2 };
  });
  t.teardown(end);
  t.equal(loop.start(), loop);
  await passes(5);
  await loop.stop();
  t.equal(most, 1);
  t.match(done[0], { loop: 'in turn', counts: { swept: 2 }, error: null, ms: Number });
});

t.test('stop waits for the pass under way, tells it to end, and may be called twice', async (t) => {
  let finish: (counts: Counts) => void = () => {};
  let signal: AbortSignal | null = null;
  const started = new Promise<void>((resolve) => {
    const { loop, end } = looping('stopping', async (given) => {
      signal = given;
      resolve();
      return await new Promise<Counts>((give) => (finish = give));
    });
    t.teardown(end);
    loop.start();
    t.context = loop;
  });
  await started;
  const loop = t.context as Loop;
  t.equal((signal as AbortSignal | null)?.aborted, false);
  const stopped: string[] = [];
  const first = loop.stop().then(() => stopped.push('first'));
  const second = loop.stop().then(() => stopped.push('second'));
  await new Promise(setImmediate);
  t.same(stopped, [], 'the pass is still under way');
  t.equal((signal as AbortSignal | null)?.aborted, true);
  finish({});
  await Promise.all([first, second]);
  t.same(stopped, ['first', 'second']);
  await loop.stop();
});

t.test('no pass begins after stop', async (t) => {
  let passes = 0;
  const waiting = looping('stopped', async () => ({ passes: ++passes }), { firstMs: 60_000 });
  t.teardown(waiting.end);
  await waiting.loop.start().stop();
  const between = looping('stopped between', async () => ({ passes: ++passes }), { everyMs: 60_000 });
  t.teardown(between.end);
  between.loop.start();
  await between.passes(1);
  await between.loop.stop();
  t.equal(passes, 1);
});

t.test('a pass that fails is published and comes again, even if it throws at once', async (t) => {
  let tries = 0;
  const { loop, done, passes, end } = looping('failing', (): Promise<Counts> => {
    tries += 1;
    if (tries === 1) throw new Error('at once');
    if (tries < 4) return Promise.reject(new Error(`try ${tries}`));
    return Promise.resolve({ reaped: 1 });
  });
  t.teardown(end);
  loop.start();
  await passes(4);
  await loop.stop();
  t.same(
    done.slice(0, 4).map(({ error, counts }) => error?.message ?? counts),
    ['at once', 'try 2', 'try 3', { reaped: 1 }],
  );
});

t.test('more work than one pass can do is done at once', async (t) => {
  let left = 3;
  const { loop, done, passes, end } = looping('more', async () => ({ reaped: left-- > 0 ? 10 : 0 }), {
    everyMs: 60_000,
    hasMore: (counts) => counts['reaped'] === 10,
  });
  t.teardown(end);
  loop.start();
  await passes(4);
  await loop.stop();
  t.same(
    done.map(({ counts }) => counts['reaped']),
    [10, 10, 10, 0],
  );
});
