import t from 'tap';
import { canonicalForm } from '../../src/core/canonical-form.ts';
import { ignoredBy } from '../../src/core/json-pointer.ts';

const canonical = (body: string, ignore: readonly string[] = []) =>
  canonicalForm(Buffer.from(body), ignoredBy(ignore));

t.test('sorted by name, values of one name in their order', async (t) => {
  t.equal(canonical('b=1&a=2&c&a=1'), '1:a1:21:a1:11:b1:11:c-');
  t.equal(canonical('=&a=1'), '0:0:1:a1:1', 'no name and no value is a field all the same');
  t.equal(canonical('&&'), '');
});

t.test('none where an upstream may read two names as one', async (t) => {
  t.equal(
    canonical('a=1&b[c]=2'),
    null,
    'also where there is no second one: it may be behind what PHP makes of it',
  );
  t.equal(canonical('b=2&A=1'), '1:A1:11:b1:2', 'one name in capital letters');
  t.equal(canonical('A=2&A=1'), '1:A1:21:A1:1', 'twice the same');
  t.equal(canonical('A=2&a=1'), null);
  t.equal(canonical('a=.[]&b= '.replace(' ', '+')), '1:a3:.[]1:b1: ', 'values are not read');
});

t.test('escapes are two hexadecimal digits', async (t) => {
  t.equal(canonical('%30%39%41%46%61%66=%1f%f1'), '6:09AFaf2:\x1f\xf1');
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

t.test('what is ignored', async (t) => {
  const rows: [pointer: string, name: string, ignored: boolean][] = [
    ['/nonce', 'nonce', true],
    ['/nonce', 'Nonce', false],
    ['/nonce', 'nonces', false],
    ['/nonce', 'a[nonce]', false],
    ['/nonce', 'nonce[]', true],
    ['/nonce', 'nonce[a][b]', true],
    ['/nonce', 'nonce.a', false],
    ['/a.b', 'a.b', true],
    ['/meta/at', 'meta[at]', true],
    ['/meta/at', 'meta[at][0]', true],
    ['/meta/at', 'meta', false],
    ['/meta/at', 'meta[to]', false],
    ['/meta/at', 'meta/at', false],
    ['/meta/at', 'meta[at', false],
    ['/meta~1at', 'meta/at', true],
    ['/list/', 'list[]', true],
    ['/é', '%C3%A9', true],
    ['/é', '%E9', false],
  ];
  for (const [pointer, name, ignored] of rows) {
    const isSame = canonical(`${name}=1&a=1`, [pointer]) === canonical(`a=1`, [pointer]);
    t.equal(isSame, ignored, `${pointer} ${name}`);
  }
  t.equal(canonical('A=2&a=1&n=1', ['/n']), '1:A1:21:a1:1');
  t.equal(canonical('n=1&a=1;b=2', ['/n']), null, 'no form at all');
});
