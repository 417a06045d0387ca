import { precisionFor } from '../operator/lookup.ts';
import { planPurge } from '../operator/purge.ts';
import { flagText, type KeysCall, type Ready } from './keys-call.ts';
import { change } from './keys-change.ts';
import { decisionOf } from './keys-decide.ts';
import { finder } from './keys-find.ts';

export function purgeKey(call: KeysCall): Ready {
  const epoch = flagText(call, 'epoch');
  const find = finder(call, precisionFor({ kind: 'purge' }));
  const by = decisionOf(call);
  return async (store) => {
    const record = await find(store);
    if (record === null) return 1;
    return await change(call, store, { record, planned: planPurge(call.settings, record, { epoch }), by });
  };
}
