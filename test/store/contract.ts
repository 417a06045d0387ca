import type { Test } from 'tap';
import type { RecordId, State } from '../../src/core/record.ts';
import type { Store } from '../../src/store/store.ts';
import { closeContract } from './contract/close.ts';
import { leaseContract } from './contract/lease.ts';
import { markContract } from './contract/mark.ts';
import { reapContract } from './contract/reap.ts';
import { reserveContract } from './contract/reserve.ts';
import { settleContract } from './contract/settle.ts';
import { sweepContract } from './contract/sweep.ts';
import { takeOverContract } from './contract/take-over.ts';

/** What the suite needs besides a Store: time moved instead of waited for, and a look behind the interface. */
export interface Harness {
  /** Two instances on the same data. */
  readonly stores: readonly [Store, Store];
  /** One more on the same data, for a test that closes it; the harness closes it too. */
  another(): Store;
  /** Moves the end of a record's retention, or its deadline and reservation, by the store's own clock; negative is the past. */
  moveTimes(id: RecordId, fromNow: { retainUntilMs?: number; deadlineMs?: number }): Promise<void>;
  /** The lease ends as if it had not been renewed. */
  endLease(instance: string): Promise<void>;
  /** Puts a record into a state that no method of the interface leads to. */
  forceState(id: RecordId, state: State): Promise<void>;
  /** Nothing can write to the record until the returned function is called. */
  block(id: RecordId): Promise<() => Promise<void>>;
  countRecords(): Promise<number>;
  /** No record and no instance is left. */
  clear(): Promise<void>;
}

export type Make = (t: Test) => Promise<Harness>;

/** The promises written on src/store/store.ts; every implementation must pass. */
export function contract(t: Test, make: Make): void {
  const suites = {
    reserve: reserveContract,
    'take over': takeOverContract,
    mark: markContract,
    settle: settleContract,
    lease: leaseContract,
    sweep: sweepContract,
    reap: reapContract,
    close: closeContract,
  };
  for (const [name, suite] of Object.entries(suites)) {
    t.test(name, async (group) => suite(group, await make(group)));
  }
}
