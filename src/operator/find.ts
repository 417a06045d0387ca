import type { OperatorStore, RecordView, Search } from '../store/operator.ts';
import type { Lookup } from './lookup.ts';
import type { OperatorSettings } from './settings.ts';
import { idLetters } from './short-id.ts';

export interface FindDeps {
  readonly store: OperatorStore;
  readonly settings: OperatorSettings;
}

export type Found = Match | NotIndexed | OtherIdentity;

type Match =
  | { readonly kind: 'one'; readonly record: RecordView }
  /** `isCut`: there may be more. */
  | { readonly kind: 'several'; readonly records: readonly RecordView[]; readonly isCut: boolean }
  /** Never reserved, or past its retention and deleted. */
  | { readonly kind: 'none' }
  /** No record begins so that waits, runs or was handled; a settled one is looked for only by an ID of all its letters. */
  | { readonly kind: 'none_begins'; readonly fullLetters: number };

/** It is not where an index leads: `findAnywhere` has to read the whole table. */
interface NotIndexed {
  readonly kind: 'not_indexed';
  readonly search: Search;
  readonly aboutRecords: number;
  /** It takes long enough that a person should be warned before. */
  readonly isSlow: boolean;
}

/** The sidecars place keys by other settings, so the key would not be found where these settings place it. */
interface OtherIdentity {
  readonly kind: 'other_identity';
  readonly inStore: string;
  readonly inSettings: string;
}

/** Records. Reading up to so many takes no time worth a word. */
const quickScanRecords = 100_000;

/** Rejects with `store_unavailable`, as does the next. */
export async function find({ store, settings }: FindDeps, lookup: Lookup): Promise<Found> {
  if (lookup.kind === 'places') return await findAt({ store, settings }, lookup.places);
  const { search } = lookup;
  const found = await store.find(search);
  if (found.length > 0) return matchOf(found, search.limit);
  const { hashPrefix } = search;
  // A short beginning would mean too many of all records.
  if (hashPrefix !== null && hashPrefix.length < idLetters)
    return { kind: 'none_begins', fullLetters: idLetters };
  const aboutRecords = await store.countRoughly();
  return { kind: 'not_indexed', search, aboutRecords, isSlow: aboutRecords > quickScanRecords };
}

/** Reads the whole table, which may take minutes. */
export async function findAnywhere({ store }: Pick<FindDeps, 'store'>, search: Search): Promise<Match> {
  return matchOf(await store.findAnywhere(search), search.limit);
}

async function findAt(
  { store, settings }: FindDeps,
  places: Extract<Lookup, { kind: 'places' }>['places'],
): Promise<Found> {
  const inStore = await store.identity();
  if (inStore !== null && inStore !== settings.identity)
    return { kind: 'other_identity', inStore, inSettings: settings.identity };
  const found: RecordView[] = [];
  for (const place of places) {
    const record = await store.at(place);
    if (record !== null) found.push(record);
  }
  return matchOf(found, Number.POSITIVE_INFINITY);
}

function matchOf(records: readonly RecordView[], limit: number): Match {
  const [record] = records;
  if (record === undefined) return { kind: 'none' };
  return records.length === 1
    ? { kind: 'one', record }
    : { kind: 'several', records, isCut: records.length >= limit };
}
