import t from 'tap';
import { foldName, isVariantOf, readsAs } from '../../src/core/fold-name.ts';

const token = [...Array(128).keys()]
  .map((code) => String.fromCharCode(code))
  .filter((c) => /[!#$%&'*+.^_`|~0-9A-Za-z-]/.test(c));

t.test('letters without case, digits, and all else alike', (t) => {
  t.equal(foldName('X_Tenant.Id~9'), 'x-tenant-id-9');
  for (const a of token) {
    for (const b of token) t.equal(readsAs(`x${a}`, `x${b}`), foldName(a) === foldName(b), `${a} ${b}`);
  }
  t.notOk(readsAs('ab', 'a'));
  t.end();
});

t.test('a variant is another name that reads the same', (t) => {
  t.ok(isVariantOf('x_tenant', 'x-tenant'));
  t.notOk(isVariantOf('x-tenant', 'x-tenant'));
  t.notOk(isVariantOf('x-tenans', 'x-tenant'));
  t.notOk(isVariantOf('x-tenant', null));
  t.end();
});
