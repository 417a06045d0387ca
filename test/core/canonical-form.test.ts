import t from 'tap';
import { canonicalForm } from '../../src/core/canonical-form.ts';

const canonical = (body: string) => canonicalForm(Buffer.from(body));

t.test('sorted by name, values of one name in their order', async (t) => {
  t.equal(canonical('b=1&a=2&c&a=1'), '1:a1:21:a1:11:b1:11:c-');
  t.equal(canonical('=&a=1'), '0:0:1:a1:1', 'no name and no value is a field all the same');
  t.equal(canonical('&&'), '');
});

t.test('one list among the fields: then the order of all that have its name counts', async (t) => {
  t.equal(canonical('a[b]=2&a[]=1&c=3'), '4:a[b]1:23:a[]1:11:c1:3');
  t.equal(canonical('c=3&a[]=1&a[b]=2'), '3:a[]1:14:a[b]1:21:c1:3');
  t.equal(canonical('a[c]=2&a[b]=1'), '4:a[b]1:14:a[c]1:2', 'without one it does not');
});

t.test('escapes are two hexadecimal digits', async (t) => {
  t.equal(canonical('%30%39%41%46%61%66%1f%f1'), '8:09AFaf\x1f\xf1-');
  for (const escape of [
    '%g0',
    '%0g',
    '%.0',
    '%0.',
    '%/0',
    '%0/',
    '%:0',
    '%0:',
    '%@0',
    '%0@',
    '%`0',
    '%0`',
    '%G0',
  ])
    t.equal(canonical(escape), null, escape);
});
