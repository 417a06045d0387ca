import { OncegateError } from '../errors.ts';
import { type Found, find, findAnywhere } from '../operator/find.ts';
import {
  fewLetters,
  type Lookup,
  type LookupResult,
  lookupFor,
  type Named,
  type Precision,
} from '../operator/lookup.ts';
import type { OperatorStore, RecordView } from '../store/operator.ts';
import { fault, flagText, type KeysCall, notDone } from './keys-call.ts';
import { recordTable } from './keys-text.ts';

/** null: not found, or several; the person has been told. */
export type Finder = (store: OperatorStore) => Promise<RecordView | null>;

export function finder(call: KeysCall, precision: Precision): Finder {
  const lookup = lookupOf(call, lookupFor(call.settings, namedBy(call), precision));
  return async (store) => {
    const found = await find({ store, settings: call.settings }, lookup);
    if (found.kind !== 'not_indexed') return onlyOne(call, found);
    const { search, aboutRecords, isSlow } = found;
    if (isSlow)
      call.io.stderr.write(
        `reading all records, about ${Math.round(aboutRecords).toLocaleString('en')}: this may take minutes; ` +
          '--key with --path (and --tenant) finds one at once\n',
      );
    return onlyOne(call, await findAnywhere({ store }, search));
  };
}

function namedBy(call: KeysCall): Named {
  const [, id] = call.args.words;
  const key = flagText(call, 'key');
  if (id !== undefined) {
    for (const flag of ['key', 'method', 'tenant', 'path'])
      if (flagText(call, flag) !== null) throw fault(call, `--${flag} goes with --key, not with an ID`);
    return { kind: 'id', id };
  }
  if (key === null) throw fault(call, 'say which: an ID as oncegate keys list shows it, or --key KEY');
  const [tenant, path, method] = [flagText(call, 'tenant'), flagText(call, 'path'), flagText(call, 'method')];
  return { kind: 'key', key, tenant, path, method };
}

const withoutAsking = '; fewer only where a person is asked, or with --epoch';

function lookupOf(call: KeysCall, result: LookupResult): Lookup {
  switch (result.kind) {
    case 'lookup':
      return result.lookup;
    case 'bad_id': {
      const { leastLetters, mostLetters } = result;
      throw fault(
        call,
        `an ID has ${leastLetters} to ${mostLetters} letters of 0-9 and a-f; a client's key is given as --key KEY${leastLetters > fewLetters ? withoutAsking : ''}`,
      );
    }
    case 'no_tenants':
      throw fault(call, '--tenant: this config knows no tenants; give that of the sidecars with --config');
    case 'place_missing': {
      const tenantToo = result.needsTenant ? ' and --tenant TENANT' : '';
      throw fault(call, `with --key, give --path PATH${tenantToo} too: the same key may stand elsewhere`);
    }
  }
}

function onlyOne(call: KeysCall, found: Exclude<Found, { kind: 'not_indexed' }>): RecordView | null {
  switch (found.kind) {
    case 'one':
      return found.record;
    case 'none':
      notDone(call, 'no such record: never reserved, or past its retention and deleted');
      return null;
    case 'none_begins':
      notDone(
        call,
        `no record begins with ${call.args.words[1]} that waits, runs or was handled; of another, all ${found.fullLetters} letters are needed`,
      );
      return null;
    case 'several': {
      const { records, isCut } = found;
      const count = isCut ? 'many records' : `${records.length} records`;
      notDone(call, `that is ${count}; say which:\n${recordTable(records)}`);
      return null;
    }
    case 'other_identity':
      // With other settings than those of the sidecars the key would stand elsewhere, and not be found.
      throw new OncegateError(
        'identity_changed',
        `--key cannot be looked for: this config is not that of the sidecars.\n  the store has  ${found.inStore}\n` +
          `  this config    ${found.inSettings}\nGive theirs with --config, or an ID instead.`,
      );
  }
}
