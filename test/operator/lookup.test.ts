import t from 'tap';
import { createMemos } from '../../src/core/memos.ts';
import { scopeOf } from '../../src/core/scope.ts';
import { type LookupResult, lookupFor, type Named, precisionFor } from '../../src/operator/lookup.ts';
import { settings } from './room.ts';

const show = precisionFor({ kind: 'show' });
const checked = precisionFor({ kind: 'resolve', isChecked: true });
const unchecked = precisionFor({ kind: 'resolve', isChecked: false });
const purge = precisionFor({ kind: 'purge' });

const id = (text: string): Named => ({ kind: 'id', id: text });
const key = (place: Partial<Record<'tenant' | 'path' | 'method', string>> = {}): Named => ({
  kind: 'key',
  key: 'order-1',
  tenant: null,
  path: null,
  method: null,
  ...place,
});

const scopesOf = (result: LookupResult) =>
  result.kind === 'lookup' && result.lookup.kind === 'places'
    ? result.lookup.places.map(({ scope }) => scope)
    : result;

t.test('an ID: hexadecimal, in any letter case, as long as what is at stake needs', async (t) => {
  const { lookup } = lookupFor(settings(), id('3F2A'), show) as Extract<LookupResult, { kind: 'lookup' }>;
  t.match(lookup, { kind: 'search', search: { hashPrefix: '3f2a', key: null, path: null } });
  const bad = (text: string, precision: typeof show) => lookupFor(settings(), id(text), precision);
  for (const text of ['', '3f2', 'order-1', '3f2g', 'a'.repeat(65)])
    t.match(bad(text, show), { kind: 'bad_id', leastLetters: 4, mostLetters: 64 }, text);
  t.equal(bad('a'.repeat(64), show).kind, 'lookup');
  t.equal(bad('a'.repeat(4), checked).kind, 'lookup', 'a person sees it, or the epoch says which');
  for (const precision of [unchecked, purge]) {
    t.match(bad('a'.repeat(15), precision), { kind: 'bad_id', leastLetters: 16 });
    t.equal(bad('a'.repeat(16), precision).kind, 'lookup');
  }
});

t.test('a key with its place: each scope where it can be', async (t) => {
  const one = settings();
  t.strictSame(
    scopesOf(lookupFor(one, key({ path: '/charges' }), purge)),
    [scopeOf(createMemos(), [null, 'POST', '/charges']), scopeOf(createMemos(), [null, 'PATCH', '/charges'])],
    'each guarded method once',
  );
  t.strictSame(scopesOf(lookupFor(one, key({ path: '/charges', method: 'patch' }), purge)), [
    scopeOf(createMemos(), [null, 'PATCH', '/charges']),
  ]);
  const tenants = settings({ hasTenants: true });
  t.strictSame(scopesOf(lookupFor(tenants, key({ tenant: 'a', path: '/charges', method: 'PUT' }), purge)), [
    scopeOf(createMemos(), ['a', 'PUT', '/charges']),
  ]);
  const byTenant = settings({ hasTenants: true, scopeParts: ['tenant'] });
  t.strictSame(
    scopesOf(lookupFor(byTenant, key({ tenant: 'a' }), purge)),
    [scopeOf(createMemos(), ['a'])],
    'without a path',
  );
  t.strictSame(scopesOf(lookupFor(settings({ scopeParts: ['tenant'] }), key(), purge)), [
    scopeOf(createMemos(), [null]),
  ]);
});

t.test('a key without its place: searched for to show it, never to change it', async (t) => {
  t.match(lookupFor(settings(), key({ method: 'POST' }), show), {
    kind: 'lookup',
    lookup: { kind: 'search', search: { hashPrefix: null, key: 'order-1', path: null, method: 'POST' } },
  });
  for (const precision of [checked, unchecked, purge]) {
    t.strictSame(lookupFor(settings(), key(), precision), { kind: 'place_missing', needsTenant: false });
    for (const place of [{}, { path: '/charges' }, { tenant: 'a' }])
      t.strictSame(
        lookupFor(settings({ hasTenants: true }), key(place), precision),
        { kind: 'place_missing', needsTenant: true },
        JSON.stringify(place),
      );
  }
});

t.test('a tenant where there are none is a mistake, not a filter', async (t) => {
  for (const precision of [show, purge])
    t.strictSame(lookupFor(settings(), key({ tenant: 'a', path: '/charges' }), precision), {
      kind: 'no_tenants',
    });
});
