import { censusTaken } from '../events.ts';
import type { Store } from '../store/store.ts';
import type { Counts } from './loop.ts';

/** Counts what is not settled, for the gauges. It acts on nothing, so there is nothing to count as done. */
export async function countOnce({ store }: { readonly store: Store }): Promise<Counts> {
  censusTaken.publish(await store.census());
  return {};
}
