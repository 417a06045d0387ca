import { createMemos } from '../core/memos.ts';
import type { RecordId } from '../core/record.ts';
import { scopeAt } from '../core/scope.ts';
import type { Search } from '../store/operator.ts';
import type { OperatorSettings } from './settings.ts';
import { hashLetters, idLetters } from './short-id.ts';

/** How somebody names a record. */
export type Named =
  /** An ID or the beginning of one, in any letter case. */
  | { readonly kind: 'id'; readonly id: string }
  /** The client's key, and what is known of where it was used. */
  | ({ readonly kind: 'key'; readonly key: string } & KeyPlace);

interface KeyPlace {
  readonly tenant: string | null;
  readonly path: string | null;
  readonly method: string | null;
}

/** How exactly a record must be named. */
export interface Precision {
  readonly leastLetters: number;
  /** A key must come with all that says where it is: then it can mean no other record. */
  readonly isPlaced: boolean;
}

/** What to ask the store for. */
export type Lookup =
  /** Each of the places where the key can be. */
  | { readonly kind: 'places'; readonly places: readonly RecordId[] }
  | { readonly kind: 'search'; readonly search: Search };

export type LookupResult =
  | { readonly kind: 'lookup'; readonly lookup: Lookup }
  | { readonly kind: 'bad_id'; readonly leastLetters: number; readonly mostLetters: number }
  /** A tenant was named, but these settings know none. */
  | { readonly kind: 'no_tenants' }
  /** The key alone could mean another record: it takes the path, and the tenant where there are some. */
  | { readonly kind: 'place_missing'; readonly needsTenant: boolean };

/** Letters of an ID that are enough where a mistake is seen before anything happens. */
export const fewLetters = 4;

/** More records than anybody wants to choose from. */
const mostFound = 10;

/** What the record is looked up for. */
export type Purpose =
  | { readonly kind: 'show' }
  /** `isChecked`: a person is shown the record before it changes, or its epoch is compared. */
  | { readonly kind: 'resolve'; readonly isChecked: boolean }
  | { readonly kind: 'purge' };

/**
 * A mistake in a short name is seen where a person looks or an epoch is compared; elsewhere the beginning of an ID may have come to mean
 * another record. A purge takes the whole ID either way: it makes a request run again that is known to have run.
 */
export function precisionFor(purpose: Purpose): Precision {
  switch (purpose.kind) {
    case 'show':
      return { leastLetters: fewLetters, isPlaced: false };
    case 'resolve':
      return { leastLetters: purpose.isChecked ? fewLetters : idLetters, isPlaced: true };
    case 'purge':
      return { leastLetters: idLetters, isPlaced: true };
  }
}

/** Decides, before the store is asked, what to ask it for; or says why the name is not good enough. */
export function lookupFor(settings: OperatorSettings, named: Named, precision: Precision): LookupResult {
  return named.kind === 'id' ? byId(named.id, precision) : byKey(settings, named, precision);
}

const anywhere = { key: null, tenant: null, path: null, method: null, limit: mostFound };

function byId(id: string, { leastLetters }: Precision): LookupResult {
  const isHash = /^[0-9a-f]+$/i.test(id);
  if (!isHash || id.length < leastLetters || id.length > hashLetters)
    return { kind: 'bad_id', leastLetters, mostLetters: hashLetters };
  return lookup({ kind: 'search', search: { ...anywhere, hashPrefix: id.toLowerCase() } });
}

function byKey(
  settings: OperatorSettings,
  { key, tenant, path, method }: Extract<Named, { kind: 'key' }>,
  { isPlaced }: Precision,
): LookupResult {
  if (!settings.hasTenants && tenant !== null) return { kind: 'no_tenants' };
  const places = placesOf(settings, { tenant, path, method });
  if (places !== null) return lookup({ kind: 'places', places: places.map((scope) => ({ scope, key })) });
  if (isPlaced) return { kind: 'place_missing', needsTenant: settings.hasTenants };
  const search = { hashPrefix: null, key, tenant, path, method, limit: mostFound };
  return lookup({ kind: 'search', search });
}

/** The scopes in which the key can be; null: too little is known to say. */
function placesOf(settings: OperatorSettings, { tenant, path, method }: KeyPlace): readonly Buffer[] | null {
  const { hasTenants, scopeParts, guardedMethods } = settings;
  if (hasTenants && tenant === null) return null;
  const memos = createMemos();
  if (!scopeParts.includes('endpoint')) return [scopeAt(memos, { tenant, method: '', path: '' }, scopeParts)];
  if (path === null) return null;
  const methods = new Set(method === null ? guardedMethods : [method.toUpperCase()]);
  return [...methods].map((one) => scopeAt(memos, { tenant, method: one, path }, scopeParts));
}

function lookup(wanted: Lookup): LookupResult {
  return { kind: 'lookup', lookup: wanted };
}
