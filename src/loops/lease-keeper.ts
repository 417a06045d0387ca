import { leaseOpened } from '../events.ts';
import type { Lease } from '../store/lease.ts';
import type { Counts } from './loop.ts';

/** Renews this instance's lease. A third of it apart, so that two renewals may fail before it lapses. */
export const renewalsPerLease = 3;

export async function renewOnce({ lease }: { readonly lease: Lease }): Promise<Counts> {
  const result = await lease.renew();
  const instance = lease.current();
  if (result === 'opened' && instance !== null) leaseOpened.publish({ instance });
  return { [result]: 1 };
}
