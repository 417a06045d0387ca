import { createMemos } from '../../src/core/memos.ts';
import type { RecordId, StoredRecord } from '../../src/core/record.ts';
import { renewalsPerLease, renewOnce } from '../../src/loops/lease-keeper.ts';
import { Loop } from '../../src/loops/loop.ts';
import { reapOnce } from '../../src/loops/reaper.ts';
import { Sweeper } from '../../src/loops/sweeper.ts';
import { Attempts } from '../../src/proxy/attempts.ts';
import { Budget } from '../../src/proxy/budget.ts';
import type { ProxyDeps } from '../../src/proxy/deps.ts';
import { Exchange } from '../../src/proxy/exchange.ts';
import { handle } from '../../src/proxy/handle.ts';
import { ReplayCache } from '../../src/proxy/replay-cache.ts';
import { Waiters } from '../../src/proxy/waiters.ts';
import { Lease } from '../../src/store/lease.ts';
import type { UpstreamClient } from '../../src/upstream/client.ts';
import type { Owner } from './clockwork.ts';
import { SimStore } from './sim-store.ts';
import { SimUpstreamClient } from './sim-upstream.ts';
import { SimWire } from './sim-wire.ts';
import type { Connection } from './sockets.ts';
import { sweepMs, type World } from './world.ts';

const identity: ProxyDeps['identity'] = {
  keySources: ['idempotency-key'],
  keyLimits: { minLength: 0, maxLength: 255 },
  tenantHeader: 'x-tenant',
  scopeParts: ['tenant', 'endpoint'],
};

const heldBytes = 1_000_000;
const retryMs = 1_000;
const reapMs = 20_000;
/** Milliseconds between looks whether a drain is over; then as in src/main.ts. */
const lookMs = 100;
const drainMs = 9_000;
const lastSettleMs = 5_000;

class SeenCache extends ReplayCache {
  readonly #saw: World['saw'];

  constructor({ saw }: World) {
    super(heldBytes);
    this.#saw = saw;
  }

  override find(id: RecordId): StoredRecord | null {
    const record = super.find(id);
    if (record !== null) this.#saw('replayed from memory');
    return record;
  }
}

/** One process: all that src/main.ts puts together for guarded requests, but for the sockets. */
export class Sidecar implements Owner {
  readonly name: string;
  readonly wire: SimWire;
  readonly deps: ProxyDeps;
  readonly #world: World;
  readonly connections = new Set<Connection>();
  readonly #client: SimUpstreamClient;
  readonly #store: SimStore;
  readonly #loops: Loop[] = [];
  isDead = false;
  /** It takes no more requests. */
  isDraining = false;
  /** It came to the end of its drain. */
  isDrained = false;
  /** Its drain ended with attempts under way: their requests end with the process. */
  hasGivenUp = false;
  pausedUntilMs = 0;
  /** Told of the next request that stands in the upstream's queue; says for how many milliseconds it stands there. */
  onQueued: (() => number) | null = null;
  monotonicMs: number;
  wallMs: number;

  constructor(world: World, name: string) {
    const { choices, policy } = world;
    this.name = name;
    this.#world = world;
    this.monotonicMs = choices.between(0, 1_000_000);
    this.wallMs = choices.between(0, 100_000);
    this.wire = new SimWire(world, this);
    const store = new SimStore(this.wire);
    this.#store = store;
    this.#client = new SimUpstreamClient(world, this);
    const client = this.#client as unknown as UpstreamClient;
    this.deps = {
      identity,
      memos: createMemos(),
      policies: { defaults: policy, all: [policy], policyFor: () => policy, policyForAny: () => policy },
      store,
      lease: new Lease(store, world.settings.leaseMs),
      attempts: new Attempts(),
      waiters: new Waiters(store),
      budget: new Budget(heldBytes),
      replays: new SeenCache(world),
      clientFor: () => client,
    };
  }

  start(): void {
    const { store, lease, attempts } = this.deps;
    const { choices, settings } = this.#world;
    const { leaseMs } = settings;
    const sweeper = new Sweeper({ store, lease, unsent: attempts.unsent, nowMs: () => performance.now() });
    const renewMs = leaseMs / renewalsPerLease;
    let opened = 0;
    const renew = async () => {
      const counts = await renewOnce({ lease });
      if (counts['opened'] === 1) opened += 1;
      if (opened > 1 && counts['opened'] === 1) this.#world.saw('lapsed lease');
      return counts;
    };
    const loops = [
      { name: 'lease', everyMs: renewMs, firstMs: 1, retryMs: Math.min(retryMs, renewMs), runOnce: renew },
      {
        name: 'sweeper',
        everyMs: sweepMs,
        firstMs: choices.between(100, sweepMs),
        retryMs,
        runOnce: (signal: AbortSignal) => sweeper.runOnce(signal),
      },
      {
        name: 'reaper',
        everyMs: reapMs,
        firstMs: choices.between(100, reapMs),
        retryMs,
        runOnce: () => reapOnce({ store }),
      },
    ];
    for (const options of loops) this.#loops.push(new Loop(options).start());
  }

  /** SIGTERM: what runs is answered, then cut, then given up; the lease is closed and the store last. */
  async drain(): Promise<void> {
    const { attempts, lease } = this.deps;
    this.isDraining = true;
    const cut = setTimeout(() => this.#client.destroy(), drainMs);
    const atLast = setTimeout(() => {
      this.hasGivenUp = attempts.size > 0;
      if (this.hasGivenUp) this.#world.saw('given up at the end of a drain');
      attempts.abandon();
    }, drainMs + lastSettleMs);
    const endMs = performance.now() + drainMs + lastSettleMs;
    // Those who only wait have no attempt; what is still there at the end has its connection cut.
    while (attempts.size > 0 || (this.connections.size > 0 && performance.now() < endMs))
      await new Promise((resolve) => setTimeout(resolve, lookMs));
    clearTimeout(cut);
    clearTimeout(atLast);
    await Promise.all(this.#loops.map((loop) => loop.stop()));
    await lease.close().catch(() => {});
    await this.#store.close(lastSettleMs);
    this.isDrained = true;
    this.isDead = true;
    this.#world.saw('drained');
    for (const connection of this.connections) connection.vanish();
  }

  /** A request has come in. */
  take(connection: Connection, requestId: string): void {
    const { policy } = this.#world;
    const { req, res } = connection;
    void handle(this.deps, new Exchange(req, res, { policy, requestId, budget: this.deps.budget }));
  }
}
