import { randomBytes } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t from 'tap';
import { Pieces } from '../../src/proxy/pieces.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Cuts `whole` in turn into pieces of these lengths. */
function cut(whole: Buffer, lengths: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0, i = 0; at < whole.length; i += 1) {
    const to = at + (lengths[i % lengths.length] as number);
    pieces.push(whole.subarray(at, to));
    at = to;
  }
  return pieces;
}

for (const lengths of [[200_000], [1], [1, 4_096], [7, 70_000, 4_095], [4_095], [0, 1]]) {
  t.test(`pieces of ${lengths.join(', ')} bytes: the same bytes in the same order`, async (t) => {
    const sent = randomBytes(200_000);
    const [kept, taken] = [new Pieces(), new Pieces()];
    t.ok(kept.isEmpty);
    for (const piece of cut(sent, lengths)) {
      kept.add(piece);
      taken.add(piece);
    }
    t.equal(kept.bytes, sent.length);
    t.notOk(kept.isEmpty);
    t.ok(kept.whole().equals(sent));
    const parts: Buffer[] = [];
    for (let part = taken.shift(); part !== undefined; part = taken.shift()) parts.push(part);
    t.ok(Buffer.concat(parts).equals(sent));
    t.ok(taken.isEmpty);
    taken.add(Buffer.from('more'));
    t.equal(taken.shift()?.toString(), 'more');
    kept.clear();
    t.ok(kept.isEmpty);
  });
}

t.test('taken out and added in turn', async (t) => {
  const sent = randomBytes(100_000);
  const pieces = new Pieces();
  const parts: Buffer[] = [];
  cut(sent, [3, 900, 5_000]).forEach((piece, index) => {
    pieces.add(piece);
    if (index % 3 === 0) parts.push(pieces.shift() as Buffer);
  });
  for (let part = pieces.shift(); part !== undefined; part = pieces.shift()) parts.push(part);
  t.ok(Buffer.concat(parts).equals(sent));
});

t.test('a body sent byte by byte takes little more than its length', async (t) => {
  const pieces = new Pieces();
  collect();
  const before = process.memoryUsage();
  for (let i = 0; i < 500_000; i += 1) pieces.add(Buffer.from('x'));
  collect();
  const after = process.memoryUsage();
  const bytes = after.heapUsed - before.heapUsed + after.arrayBuffers - before.arrayBuffers;
  t.ok(bytes < 10_000_000, `${bytes} bytes`);
  t.equal(pieces.bytes, 500_000);
});
