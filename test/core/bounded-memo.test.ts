import t from 'tap';
import { BoundedMemo } from '../../src/core/bounded-memo.ts';

t.test('keeps what is short, and forgets all of it before it would pass its bound', (t) => {
  const memo = new BoundedMemo<number>(3, 4);
  t.equal(memo.get('a'), undefined);
  memo.keep('a', 1);
  memo.keep('four', 2);
  memo.keep('fiver', 3);
  t.equal(memo.get('a'), 1);
  t.equal(memo.get('four'), 2);
  t.equal(memo.get('fiver'), undefined, 'too long');
  memo.keep('c', 4);
  t.equal(memo.get('a'), 1, 'full, and nothing is lost yet');
  memo.keep('d', 5);
  t.equal(memo.get('d'), 5);
  for (const gone of ['a', 'four', 'c']) t.equal(memo.get(gone), undefined);
  t.end();
});
