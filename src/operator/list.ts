import { type State, waitingStates } from '../core/record.ts';
import { type Listing, type OperatorStore, type RecordView, settledLookedAt } from '../store/operator.ts';

/** `state` null: what waits for somebody. */
export interface ListInput extends Omit<Listing, 'states'> {
  readonly state: State | null;
}

export interface Listed {
  readonly states: readonly State[];
  readonly records: readonly RecordView[];
  /** As many as were asked for: there may be more. */
  readonly isCut: boolean;
  /** Only so many settled records were searched, those that are kept longest; null: all of these states were. */
  readonly searchedSettled: number | null;
}

/** Rejects with `store_unavailable`. Says when it may show less than there is. */
export async function list(
  { store }: { readonly store: OperatorStore },
  { state, ...filter }: ListInput,
): Promise<Listed> {
  const states = state === null ? waitingStates : [state];
  const records = await store.list({ states, ...filter });
  const isSettled = state === 'completed' || state === 'failed_retryable';
  return {
    states,
    records,
    isCut: records.length === filter.limit,
    searchedSettled: isSettled ? settledLookedAt : null,
  };
}
