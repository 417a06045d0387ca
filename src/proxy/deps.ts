import type { KeyLimits } from '../core/key.ts';
import type { Memos } from '../core/memos.ts';
import type { UpstreamTarget } from '../core/policy.ts';
import type { Policies } from '../core/routes.ts';
import type { Lease } from '../store/lease.ts';
import type { Store } from '../store/store.ts';
import type { UpstreamClient } from '../upstream/client.ts';
import type { Attempts } from './attempts.ts';
import type { Budget } from './budget.ts';
import type { ReplayCache } from './replay-cache.ts';
import type { Waiters } from './waiters.ts';

/** Settings that make a key's identity, and its form. */
interface Identity {
  readonly keySources: readonly string[];
  readonly keyLimits: KeyLimits;
  /** Lower-case; null: one tenant for all. */
  readonly tenantHeader: string | null;
  readonly scopeParts: readonly ('tenant' | 'endpoint')[];
}

export interface ProxyDeps {
  readonly identity: Identity;
  /** What the functions of core remember for this instance. */
  readonly memos: Memos;
  readonly policies: Policies;
  readonly store: Store;
  readonly lease: Lease;
  readonly attempts: Attempts;
  readonly waiters: Waiters;
  readonly budget: Budget;
  readonly replays: ReplayCache;
  readonly clientFor: (target: UpstreamTarget) => Pick<UpstreamClient, 'dispatch'>;
}
