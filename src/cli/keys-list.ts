import { suggestion } from '../config/did-you-mean.ts';
import { type State, states } from '../core/record.ts';
import { recordJson } from '../operator/json-view.ts';
import { list } from '../operator/list.ts';
import {
  fault,
  flagDurationMs,
  flagNumber,
  flagText,
  hasFlag,
  type KeysCall,
  type Ready,
  say,
} from './keys-call.ts';
import { recordTable } from './keys-text.ts';
import { storeFlags } from './store-flags.ts';

const usualLimit = 50;

export function listKeys(call: KeysCall): Ready {
  const state = stateOf(call);
  const limit = flagNumber(call, 'limit', [1, 10_000]) ?? usualLimit;
  const filter = {
    olderThanMs: flagDurationMs(call, 'older-than') ?? 0,
    tenant: flagText(call, 'tenant'),
    path: flagText(call, 'path'),
  };
  return async (store) => {
    const { states, records, isCut, searchedSettled } = await list({ store }, { state, ...filter, limit });
    if (hasFlag(call, 'json')) say(call, JSON.stringify(records.map(recordJson)));
    else say(call, records.length === 0 ? `no such record is ${states.join(' or ')}` : recordTable(records));
    // Never silently less than there is.
    const { stderr } = call.io;
    if (isCut) stderr.write(`there may be more: only ${limit} are shown; see --limit\n`);
    if (searchedSettled !== null)
      stderr.write(
        `looked at the ${searchedSettled.toLocaleString('en')} settled records that are kept longest, no others; ` +
          `one of them is found by: oncegate keys show --key KEY --path PATH${storeFlags(call.args)}\n`,
      );
    return 0;
  };
}

/** null: none was named. */
function stateOf(call: KeysCall): State | null {
  const text = flagText(call, 'state');
  if (text === null) return null;
  const state = states.find((candidate) => candidate === text);
  if (state === undefined) throw fault(call, `--state ${text}: ${suggestion(text, states)}`);
  return state;
}
