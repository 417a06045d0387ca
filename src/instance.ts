import type { Config } from './config/config.ts';
import { createMemos } from './core/memos.ts';
import type { UpstreamTarget } from './core/policy.ts';
import type { Policies } from './core/routes.ts';
import { countOnce } from './loops/census.ts';
import { renewalsPerLease, renewOnce } from './loops/lease-keeper.ts';
import { Loop } from './loops/loop.ts';
import { reapLimit, reapOnce } from './loops/reaper.ts';
import { Sweeper, sweepLimit } from './loops/sweeper.ts';
import { Attempts } from './proxy/attempts.ts';
import { Budget } from './proxy/budget.ts';
import type { ProxyDeps } from './proxy/deps.ts';
import { ReplayCache } from './proxy/replay-cache.ts';
import { Waiters } from './proxy/waiters.ts';
import { Lease } from './store/lease.ts';
import type { Store } from './store/store.ts';

/** What an instance gets from outside: what it was told, its store, and its way to the upstreams. */
export interface InstanceParts {
  readonly config: ProxyDeps['identity'] & Pick<Config, 'leaseMs' | 'loops'>;
  readonly policies: Policies;
  readonly store: Store;
  readonly clients: {
    readonly for: (target: UpstreamTarget) => ReturnType<ProxyDeps['clientFor']>;
    /** Ends every call now. */
    destroy(): Promise<void>;
  };
  /** Bytes of bodies that it may hold at once. */
  readonly heldLimitBytes: number;
}

/** What handles guarded requests, and the loops beside it; without a port. src/drain.ts ends it. */
export interface Instance {
  readonly deps: ProxyDeps;
  readonly clients: InstanceParts['clients'];
  /** Its first lease: nothing is reserved before. Rejects while the store is away, and may then be called again. */
  readonly openLease: () => Promise<void>;
  readonly startLoops: () => void;
  /** Waits for the passes under way. */
  readonly stopLoops: () => Promise<void>;
  /** One pass over what was never sent: at a clean stop nobody else knows of it. */
  readonly releaseUnsent: (signal: AbortSignal) => Promise<number>;
}

const maxReplayBytes = 16 * 1_048_576;
/** Milliseconds after a failed pass. */
const retryMs = 1_000;

/** Puts one instance together. The simulation calls it too, so that what it plays is what runs. */
export function assemble({ config, policies, store, clients, heldLimitBytes }: InstanceParts): Instance {
  const lease = new Lease(store, config.leaseMs);
  const attempts = new Attempts();
  const deps: ProxyDeps = {
    identity: config,
    memos: createMemos(),
    policies,
    store,
    lease,
    attempts,
    waiters: new Waiters(store),
    budget: new Budget(heldLimitBytes),
    replays: new ReplayCache(maxReplayBytes),
    clientFor: clients.for,
  };
  const sweeper = new Sweeper({ store, lease, unsent: attempts.unsent, nowMs: () => performance.now() });
  const loops = loopsOf(config, deps, sweeper);
  return {
    deps,
    clients,
    openLease: async () => void (await renewOnce({ lease })),
    startLoops: () => loops.forEach((loop) => void loop.start()),
    stopLoops: async () => void (await Promise.all(loops.map((loop) => loop.stop()))),
    releaseUnsent: (signal) => sweeper.releaseUnsent(signal),
  };
}

function loopsOf(config: InstanceParts['config'], { store, lease }: ProxyDeps, sweeper: Sweeper): Loop[] {
  const renewMs = config.leaseMs / renewalsPerLease;
  return [
    new Loop({
      name: 'lease',
      everyMs: renewMs,
      firstMs: renewMs,
      retryMs: Math.min(retryMs, renewMs),
      runOnce: () => renewOnce({ lease }),
    }),
    new Loop({
      name: 'sweeper',
      everyMs: config.loops.sweepMs,
      retryMs,
      runOnce: (signal) => sweeper.runOnce(signal),
      hasMore: (counts) => counts['swept'] === sweepLimit,
    }),
    new Loop({
      name: 'reaper',
      everyMs: config.loops.reapMs,
      retryMs,
      runOnce: () => reapOnce({ store }),
      hasMore: (counts) => counts['reaped'] === reapLimit,
    }),
    new Loop({
      name: 'census',
      everyMs: config.loops.sweepMs,
      retryMs,
      runOnce: () => countOnce({ store }),
    }),
  ];
}
