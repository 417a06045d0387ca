import { suggestion } from '../config/did-you-mean.ts';
import { type State, states, waitingStates } from '../core/record.ts';
import { settledLookedAt } from '../store/operator.ts';
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
import { recordJson } from './keys-json.ts';
import { recordTable } from './keys-text.ts';
import { storeFlags } from './store-flags.ts';

const usualLimit = 50;

export function listKeys(call: KeysCall): Ready {
  const wanted = statesOf(call);
  const limit = flagNumber(call, 'limit', [1, 10_000]) ?? usualLimit;
  const filter = {
    olderThanMs: flagDurationMs(call, 'older-than') ?? 0,
    tenant: flagText(call, 'tenant'),
    path: flagText(call, 'path'),
  };
  return async (store) => {
    const records = await store.list({ states: wanted, ...filter, limit });
    if (hasFlag(call, 'json')) say(call, JSON.stringify(records.map(recordJson)));
    else say(call, records.length === 0 ? `no such record is ${wanted.join(' or ')}` : recordTable(records));
    // Never silently less than there is.
    const { stderr } = call.io;
    if (records.length === limit) stderr.write(`there may be more: only ${limit} are shown; see --limit\n`);
    if (isSettled(wanted))
      stderr.write(
        `looked at the ${settledLookedAt.toLocaleString('en')} settled records that are kept longest, no others; ` +
          `one of them is found by: oncegate keys show --key KEY --path PATH${storeFlags(call.args)}\n`,
      );
    return 0;
  };
}

function statesOf(call: KeysCall): readonly State[] {
  const text = flagText(call, 'state');
  if (text === null) return waitingStates;
  const state = states.find((candidate) => candidate === text);
  if (state === undefined) throw fault(call, `--state ${text}: ${suggestion(text, states)}`);
  return [state];
}

function isSettled(wanted: readonly State[]): boolean {
  return wanted.includes('completed') || wanted.includes('failed_retryable');
}
