import type { Config } from '../config/config.ts';
import { createMemos } from '../core/memos.ts';
import type { RecordId } from '../core/record.ts';
import { scopeAt } from '../core/scope.ts';
import { OncegateError } from '../errors.ts';
import type { OperatorStore, RecordView, Search } from '../store/operator.ts';
import { fault, flagText, type KeysCall, notDone } from './keys-call.ts';
import { idLetters, recordTable } from './keys-text.ts';

/** null: not found, or several; it was told. */
export type Finder = (store: OperatorStore) => Promise<RecordView | null>;

const withoutAsking = '; fewer only where a person is asked, or with --epoch';
/** More than anybody wants to choose from. */
const mostShown = 10;
/** Records. Up to here a look at all of them takes no time worth a word. */
const scanWithoutNoticeRows = 100_000;

/** Letters of an ID that a person may type where a mistake is seen before anything happens. */
export const fewLetters = 4;

export interface Precision {
  /** An ID has at least so many letters. */
  readonly letters: number;
  /** A key comes with all that says where it is: then it can mean no other record. */
  readonly placedKey: boolean;
}

export function finder(call: KeysCall, { letters, placedKey }: Precision): Finder {
  const [, id] = call.args.words;
  const key = flagText(call, 'key');
  if (id === undefined && key === null)
    throw fault(call, 'say which: an ID as oncegate keys list shows it, or --key KEY');
  if (id !== undefined) return byId(call, id, letters);
  return byKey(call, key as string, placedKey);
}

function byId(call: KeysCall, id: string, least: number): Finder {
  for (const flag of ['key', 'method', 'tenant', 'path'])
    if (flagText(call, flag) !== null) throw fault(call, `--${flag} goes with --key, not with an ID`);
  if (!/^[0-9a-f]{4,64}$/i.test(id) || id.length < least)
    throw fault(
      call,
      `an ID has ${least} to 64 letters of 0-9 and a-f; a client's key is given as --key KEY${least > fewLetters ? withoutAsking : ''}`,
    );
  const search: Search = {
    hashPrefix: id.toLowerCase(),
    key: null,
    tenant: null,
    path: null,
    method: null,
    limit: mostShown,
  };
  return async (store) => {
    const found = await store.find(search);
    if (found.length > 0) return onlyOne(call, found);
    // Shortened it would mean too many of all records.
    if (id.length >= idLetters) return onlyOne(call, await everywhere(call, store, search));
    notDone(
      call,
      `no record begins with ${id} that waits, runs or was handled; of another, all ${idLetters} letters are needed`,
    );
    return null;
  };
}

function byKey(call: KeysCall, key: string, isPlaced: boolean): Finder {
  const places = placesOf(call, key);
  if (places !== null) {
    return async (store) => {
      await checkIdentity(call.config, store);
      const found: RecordView[] = [];
      for (const place of places) {
        const record = await store.at(place);
        if (record !== null) found.push(record);
      }
      return onlyOne(call, found);
    };
  }
  const tenantToo = call.config.tenantHeader === null ? '' : ' and --tenant TENANT';
  if (isPlaced)
    throw fault(call, `with --key, give --path PATH${tenantToo} too: the same key may stand elsewhere`);
  const [tenant, path, method] = ['tenant', 'path', 'method'].map((name) => flagText(call, name)) as [
    string | null,
    string | null,
    string | null,
  ];
  const search: Search = { hashPrefix: null, key, tenant, path, method, limit: mostShown };
  return async (store) => {
    const found = await store.find(search);
    return onlyOne(call, found.length > 0 ? found : await everywhere(call, store, search));
  };
}

/** Where the key can stand; null: too little is given to say. */
function placesOf(call: KeysCall, key: string): readonly RecordId[] | null {
  const { scopeParts, tenantHeader, defaults, routes } = call.config;
  const tenant = flagText(call, 'tenant');
  const path = flagText(call, 'path');
  const memos = createMemos();
  if (tenantHeader === null && tenant !== null)
    throw fault(call, '--tenant: this config knows no tenants; give that of the sidecars with --config');
  if (tenantHeader !== null && tenant === null) return null;
  if (!scopeParts.includes('endpoint'))
    return [{ scope: scopeAt(memos, { tenant, method: '', path: '' }, scopeParts), key }];
  if (path === null) return null;
  const method = flagText(call, 'method')?.toUpperCase();
  const methods = new Set(
    method === undefined ? [defaults, ...routes].flatMap((rule) => rule.methods) : [method],
  );
  return [...methods].map((one) => ({
    scope: scopeAt(memos, { tenant, method: one, path }, scopeParts),
    key,
  }));
}

/** With other settings than those of the sidecars the key would stand elsewhere, and not be found. */
async function checkIdentity(config: Config, store: OperatorStore): Promise<void> {
  const kept = await store.identity();
  if (kept === null || kept === config.identity) return;
  throw new OncegateError(
    'identity_changed',
    `--key cannot be looked for: this config is not that of the sidecars.\n  the store has  ${kept}\n` +
      `  this config    ${config.identity}\nGive theirs with --config, or an ID instead.`,
  );
}

async function everywhere(
  call: KeysCall,
  store: OperatorStore,
  search: Search,
): Promise<readonly RecordView[]> {
  const count = await store.countRoughly();
  if (count > scanWithoutNoticeRows)
    call.io.stderr.write(
      `reading all records, about ${Math.round(count).toLocaleString('en')}: this may take minutes; ` +
        '--key with --path (and --tenant) finds one at once\n',
    );
  return await store.findAnywhere(search);
}

function onlyOne(call: KeysCall, found: readonly RecordView[]): RecordView | null {
  const [record] = found;
  if (found.length === 1 && record !== undefined) return record;
  if (found.length === 0) notDone(call, 'no such record: never reserved, or past its retention and deleted');
  else
    notDone(
      call,
      `that is ${found.length === mostShown ? 'many records' : `${found.length} records`}; say which:\n${recordTable(found)}`,
    );
  return null;
}
