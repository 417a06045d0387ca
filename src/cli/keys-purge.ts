import { precisionFor } from '../operator/lookup.ts';
import { waitFor } from '../operator/next-steps.ts';
import { shortId } from '../operator/short-id.ts';
import type { RecordView } from '../store/operator.ts';
import { type KeysCall, notDone, type Ready } from './keys-call.ts';
import { decisionOf, isAnother, isConfirmed, tell } from './keys-decide.ts';
import { finder } from './keys-find.ts';
import { waitText } from './keys-next.ts';
import { moment } from './keys-text.ts';
import { storeFlags } from './store-flags.ts';

const warning = 'Its answer is erased for good. A retry after a minute runs the request AGAIN.';
/** As long as an answer lives in a replica's memory (proxy/replay-cache.ts). */
const memory = '.\nA replica that replayed this answer a moment ago may replay it for up to 30 s more.';

export function purgeKey(call: KeysCall): Ready {
  const find = finder(call, precisionFor({ kind: 'purge' }));
  const by = decisionOf(call);
  return async (store) => {
    const record = await find(store);
    if (record === null || isAnother(call, record)) return 1;
    const refusal = refusalOf(call, record);
    if (refusal !== null) return notDone(call, `not done: ${shortId(record)} is ${record.state}. ${refusal}`);
    if (!(await isConfirmed(call, record, warning))) return 1;
    const result = await store.purgeIfUnchanged(record, by);
    return tell(
      call,
      record,
      result,
      (after) => `done: the answer of ${shortId(record)} is erased; ${fromWhen(after)}${memory}`,
    );
  };
}

/** null: it may be purged. */
function refusalOf(call: KeysCall, record: RecordView): string | null {
  switch (record.state) {
    case 'completed':
      return null;
    case 'in_progress':
      return waitText(waitFor(call.settings, record), record);
    case 'unknown':
    case 'dead_letter':
      return `Resolve it first: oncegate keys show ${shortId(record)}${storeFlags(call.args)} says how.`;
    case 'failed_retryable':
      return 'It keeps no answer, so there is nothing to purge: the next retry runs.';
  }
}

function fromWhen(after: RecordView | null): string {
  const blockedUntilMs = after?.blockedUntilMs ?? null;
  if (after === null || blockedUntilMs === null) return 'retries run again in a minute';
  return `retries get 409 until ${moment(blockedUntilMs, after)}, then run`;
}
