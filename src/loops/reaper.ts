import type { Store } from '../store/store.ts';
import type { Counts } from './loop.ts';

/** Small enough that a pass holds its locks for milliseconds only. */
export const reapLimit = 1_000;

/** Deletes what is past its retention. Any number of replicas may do it at once. */
export async function reapOnce({ store }: { readonly store: Store }): Promise<Counts> {
  return { reaped: await store.reap(reapLimit) };
}
