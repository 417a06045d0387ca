import t from 'tap';
import { nearest, suggestion } from '../../src/config/did-you-mean.ts';

t.test('near words', async (t) => {
  const words = ['timeout', 'connections', 'url', 'host', 'payments'];
  t.equal(nearest('tmeout', words), 'timeout');
  t.equal(nearest('TimeOut', words), 'timeout');
  t.equal(nearest('timoeut', words), 'timeout', 'two letters swapped');
  t.equal(nearest('ulr', words), 'url');
  t.equal(nearest('conections', words), 'connections');
  t.equal(nearest('retries', words), null);
  t.equal(nearest('', words), null);
  t.equal(nearest('x', []), null);
  t.equal(suggestion('hots', words), 'did you mean host?');
  t.equal(suggestion('retries', ['a', 'b']), 'write one of a, b');
});
