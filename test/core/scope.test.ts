import { createHash } from 'node:crypto';
import fc from 'fast-check';
import t from 'tap';
import { createMemos } from '../../src/core/memos.ts';
import { scopeAt, scopeOf } from '../../src/core/scope.ts';

const memos = createMemos();

const hex = (...parts: (string | null)[]) => scopeOf(memos, parts).toString('hex');

t.test('a scope is a SHA-256 over length-prefixed parts', (t) => {
  const expected = createHash('sha256').update('-4:POST3:/a\u00e9').digest();
  t.strictSame(
    scopeOf(memos, [null, 'POST', '/a\u00e9']),
    expected,
    'stored scopes depend on this: it never changes',
  );
  t.end();
});

t.test('no two lists of parts share a scope', (t) => {
  const lists: (string | null)[][] = [
    [],
    [null],
    [''],
    ['', ''],
    [null, ''],
    ['', null],
    ['-'],
    ['a', 'bc'],
    ['ab', 'c'],
    ['abc'],
    ['a', 'b', 'c'],
    ['1:a'],
    ['1:', 'a'],
    ['é'],
    ['Ã©'],
    ['e\u0301'],
  ];
  t.equal(new Set(lists.map((list) => hex(...list))).size, lists.length);
  const part = fc.option(fc.string({ unit: fc.constantFrom('a', ':', '-', '1', '0') }), { nil: null });
  const list = fc.array(part, { maxLength: 4 });
  fc.assert(
    fc.property(
      list,
      list,
      (a, b) => (hex(...a) === hex(...b)) === (JSON.stringify(a) === JSON.stringify(b)),
    ),
  );
  t.end();
});

t.test('where a request counts', (t) => {
  const place = { tenant: 'acme', method: 'POST', path: '/charges' };
  t.strictSame(scopeAt(memos, place, ['tenant', 'endpoint']), scopeOf(memos, ['acme', 'POST', '/charges']));
  t.strictSame(scopeAt(memos, place, ['tenant']), scopeOf(memos, ['acme']));
  t.end();
});
