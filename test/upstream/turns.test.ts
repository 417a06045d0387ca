import t from 'tap';
import { type Turn, Turns } from '../../src/upstream/turns.ts';

const longAgoMs = -60_000;

function request(facts: Partial<Turn> = {}): Turn & { hasMadeWay: boolean } {
  const turn = {
    place: -1,
    queuedAtMs: longAgoMs,
    hasConnection: true,
    slowSinceMs: null,
    hasMadeWay: false,
    makeWay: () => {
      turn.hasMadeWay = true;
      return true;
    },
    ...facts,
  };
  return turn;
}

const waiting = () => request({ hasConnection: false });
const slow = (sinceMs = longAgoMs) => request({ slowSinceMs: sinceMs });

function checked<T extends Turn>(connections: number, ...all: T[]): void {
  const turns = new Turns<Turn>(connections);
  for (const one of all) turns.add(one);
  turns.check();
}

t.test('as many slow clients make way as requests wait, the slowest first', async (t) => {
  const [slower, slowest, quick] = [slow(longAgoMs + 1), slow(), request()];
  checked(3, slower, slowest, quick, waiting());
  t.same([slower.hasMadeWay, slowest.hasMadeWay, quick.hasMadeWay], [false, true, false]);
});

t.test('nobody makes way while there are connections enough, or nobody has waited long', async (t) => {
  const first = slow();
  checked(2, first, waiting());
  checked(1, first, request({ hasConnection: false, queuedAtMs: performance.now() }));
  t.notOk(first.hasMadeWay);
});

t.test('a client that was slow for a moment, or has no connection, does not make way', async (t) => {
  const all = [slow(performance.now()), request({ slowSinceMs: longAgoMs, hasConnection: false })];
  checked(1, ...all, waiting());
  for (const one of all) t.notOk(one.hasMadeWay);
});

t.test('where one does not make way, the next one does', async (t) => {
  const stays = request({ slowSinceMs: longAgoMs, makeWay: () => false });
  const next = slow(longAgoMs + 1);
  checked(2, stays, next, waiting());
  t.ok(next.hasMadeWay);
});

t.test('what is removed while all are visited is visited once', async (t) => {
  const turns = new Turns<Turn>(10);
  const all = [request(), request(), request(), request()];
  for (const one of all) turns.add(one);
  const visited: Turn[] = [];
  turns.forEach((one) => {
    visited.push(one);
    turns.remove(one);
    turns.remove(one);
  });
  t.equal(visited.length, all.length);
  t.equal(new Set(visited).size, all.length);
  t.equal(turns.size, 0);
});
