import t from 'tap';
import { type Turn, Turns } from '../../src/upstream/turns.ts';

const longAgoMs = -60_000;

class Request implements Turn {
  readonly name: string;
  readonly #started: string[];
  readonly address: string;
  place = -1;
  queuedAtMs = 0;
  slowSinceMs: number | null = null;
  hasMadeWay = false;
  mayMakeWay = true;
  isRefused = false;

  constructor(name: string, started: string[], address = 'a') {
    this.name = name;
    this.address = address;
    this.#started = started;
  }

  start(): void {
    this.#started.push(this.name);
  }

  refuse(): void {
    this.isRefused = true;
  }

  makeWay(): boolean {
    this.hasMadeWay = this.mayMakeWay;
    return this.mayMakeWay;
  }
}

/** So many run, and the others wait; `started`: their names, in order. */
function scene(connections: number, count: number, maxWaiting?: number) {
  const turns = new Turns<Request>(connections, maxWaiting);
  const started: string[] = [];
  const all = Array.from({ length: count }, (_, i) => new Request(`${i}`, started));
  const taken = all.map((one) => turns.add(one));
  // Long ago, but for those who say otherwise.
  for (const one of all) one.queuedAtMs = longAgoMs;
  return { turns, started, taken, all: all as [Request, Request, Request, Request] };
}

const microtasks = () => new Promise((resolve) => setImmediate(resolve));

t.test('as many run as there are connections, the others in the order in which they came', async (t) => {
  const { turns, started, all } = scene(2, 5);
  t.same(started, ['0', '1']);
  turns.remove(all[0]);
  turns.remove(all[0]);
  turns.remove(all[2]);
  t.same(started, ['0', '1'], 'not inside of whatever ended one');
  await microtasks();
  t.same(started, ['0', '1', '3'], 'one that has ended meanwhile is passed by');
  turns.remove(all[1]);
  turns.remove(all[3]);
  await microtasks();
  t.same(started, ['0', '1', '3', '4']);
  t.equal(turns.size, 1);
});

t.test('one that comes does not go before those that wait', async (t) => {
  const { turns, started, all } = scene(1, 2);
  turns.remove(all[0]);
  turns.add(new Request('late', started));
  await microtasks();
  t.same(started, ['0', '1']);
});

t.test(
  'one of another address waits behind the first of those that came before, not behind all',
  async (t) => {
    const { turns, started, all } = scene(1, 4);
    const other = new Request('other', started, 'b');
    turns.add(other);
    for (const one of [all[0], all[1], other, all[2]]) {
      turns.remove(one);
      await microtasks();
    }
    t.same(started, ['0', '1', 'other', '2', '3']);
  },
);

t.test(
  'where no more may wait, the newest of the address that has the most goes for one that has fewer',
  async (t) => {
    const { turns, started, all } = scene(1, 4, 3);
    const others = ['5', '6', '7'].map((name) => new Request(name, started, 'b'));
    t.same(
      others.map((one) => turns.add(one)),
      [true, false, false],
      'one less and one more: none has more than the other by two',
    );
    t.same(
      all.map(({ isRefused }) => isRefused),
      [false, false, false, true],
    );
    t.equal(turns.add(new Request('8', started, 'a')), false);
    turns.remove(all[0]);
    await microtasks();
    t.same(started, ['0', '1']);
    t.equal(turns.size, 3);
  },
);

t.test('no more wait than may', async (t) => {
  const { turns, taken, all } = scene(1, 4, 2);
  t.same(taken, [true, true, true, false]);
  t.equal(turns.size, 3);
  turns.remove(all[3]);
  turns.remove(all[1]);
  t.equal(turns.add(all[3]), true, 'there is room again');
});

t.test('many that end as they start are no deep recursion', async (t) => {
  const { turns, started, all } = scene(1, 4_000);
  for (const one of all) {
    const { start } = Request.prototype;
    one.start = () => {
      start.call(one);
      turns.remove(one);
    };
  }
  turns.remove(all[0]);
  await microtasks();
  await microtasks();
  t.equal(started.length, all.length);
  t.equal(turns.size, 0);
});

t.test('as many slow clients make way as requests wait, the slowest first', async (t) => {
  const { turns, all } = scene(3, 4);
  all[0].slowSinceMs = longAgoMs + 1;
  all[1].slowSinceMs = longAgoMs;
  turns.check();
  t.same(
    all.map(({ hasMadeWay }) => hasMadeWay),
    [false, true, false, false],
  );
});

t.test('nobody makes way while nobody waits, or nobody has waited long', async (t) => {
  const alone = scene(2, 2);
  alone.all[0].slowSinceMs = longAgoMs;
  alone.turns.check();
  t.notOk(alone.all[0].hasMadeWay);
  const { turns, all } = scene(1, 2);
  all[0].slowSinceMs = longAgoMs;
  all[1].queuedAtMs = performance.now();
  turns.check();
  t.notOk(all[0].hasMadeWay);
});

t.test('a client that was slow for a moment does not make way', async (t) => {
  const { turns, all } = scene(1, 2);
  all[0].slowSinceMs = performance.now();
  turns.check();
  t.notOk(all[0].hasMadeWay);
});

t.test('where one does not make way, the next one does', async (t) => {
  const { turns, all } = scene(2, 3);
  all[0].slowSinceMs = longAgoMs;
  all[0].mayMakeWay = false;
  all[1].slowSinceMs = longAgoMs + 1;
  turns.check();
  t.ok(all[1].hasMadeWay);
});

t.test('all are visited once though each is removed, and none of them starts for that', async (t) => {
  const { turns, started, all } = scene(2, 4);
  const visited: string[] = [];
  turns.forEach((one) => {
    visited.push(one.name);
    turns.remove(one);
  });
  await microtasks();
  t.same(
    visited.sort(),
    all.map(({ name }) => name),
    'each of them',
  );
  t.same(started, ['0', '1']);
  t.equal(turns.size, 0);
});
