import t from 'tap';
import { Remembered } from '../../src/core/remembered.ts';

t.test('keeps what is short, and forgets all of it before it would pass its bound', (t) => {
  const remembered = new Remembered<number>(3, 4);
  t.equal(remembered.get('a'), undefined);
  remembered.keep('a', 1);
  remembered.keep('four', 2);
  remembered.keep('fiver', 3);
  t.equal(remembered.get('a'), 1);
  t.equal(remembered.get('four'), 2);
  t.equal(remembered.get('fiver'), undefined, 'too long');
  remembered.keep('c', 4);
  t.equal(remembered.get('a'), 1, 'full, and nothing is lost yet');
  remembered.keep('d', 5);
  t.equal(remembered.get('d'), 5);
  for (const gone of ['a', 'four', 'c']) t.equal(remembered.get(gone), undefined);
  t.end();
});
