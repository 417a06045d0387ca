import t from 'tap';
import { byFirst, part, parts } from '../../src/core/parts.ts';

t.test('no two lists read the same', async (t) => {
  t.equal(part('ab'), '2:ab');
  t.equal(parts([]), '0;');
  t.equal(parts(['a', 'bc']), '2;1:a2:bc');
});

t.test('by the first, and what is equal stays in its order', async (t) => {
  t.equal(byFirst(['a', 2], ['a', 1]), 0);
  t.equal(byFirst(['a', 2], ['b', 1]), -1);
  t.equal(byFirst(['b', 1], ['a', 2]), 1);
});
