import { drain } from '../../src/drain.ts';
import { assemble, type Instance, type InstanceParts } from '../../src/instance.ts';
import type { ProxyDeps } from '../../src/proxy/deps.ts';
import { Exchange } from '../../src/proxy/exchange.ts';
import { handle } from '../../src/proxy/handle.ts';
import type { Owner } from './clockwork.ts';
import { SimStore } from './sim-store.ts';
import { SimUpstreamClient } from './sim-upstream.ts';
import { SimWire } from './sim-wire.ts';
import type { Connection } from './sockets.ts';
import { reapMs, sweepMs, type World } from './world.ts';

const config: Omit<InstanceParts['config'], 'leaseMs'> = {
  keySources: ['idempotency-key'],
  keyLimits: { minLength: 0, maxLength: 255 },
  tenantHeader: 'x-tenant',
  scopeParts: ['tenant', 'endpoint'],
  loops: { sweepMs, reapMs },
};

const heldLimitBytes = 1_000_000;
const drainMs = 9_000;
/** Milliseconds between tries to open the first lease. */
const openAgainMs = 1_000;
/** Milliseconds between looks whether every connection has ended. */
const lookMs = 100;

/** One process: the instance that src/main.ts serves, with other sockets, another upstream and another way to the store. */
export class Sidecar implements Owner {
  readonly name: string;
  readonly wire: SimWire;
  readonly #world: World;
  readonly #instance: Instance;
  readonly connections = new Set<Connection>();
  #started: Promise<void> = Promise.resolve();
  isDead = false;
  /** It takes no more requests. */
  isDraining = false;
  /** Its drain took too long, so it has cut its clients. */
  hasCut = false;
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
    const client = new SimUpstreamClient(world, this);
    this.#instance = assemble({
      config: { ...config, leaseMs: world.settings.leaseMs },
      policies: { defaults: policy, all: [policy], policyFor: () => policy, policyForAny: () => policy },
      store: new SimStore(this.wire),
      clients: { for: () => client, destroy: () => client.destroy() },
      heldLimitBytes,
    });
  }

  get deps(): ProxyDeps {
    return this.#instance.deps;
  }

  start(): void {
    this.#started = this.#start();
  }

  /** As src/main.ts, but that it waits for its store for ever, and takes requests meanwhile. */
  async #start(): Promise<void> {
    do {
      try {
        await this.#instance.openLease();
        return this.#instance.startLoops();
      } catch {
        await passed(openAgainMs);
      }
    } while (!this.isDraining);
  }

  /** SIGTERM. */
  async drain(): Promise<void> {
    const { saw } = this.#world;
    this.isDraining = true;
    await this.#started;
    const data = { close: () => this.#allEnded(), cut: () => this.#cut() };
    const { abandoned } = await drain(
      { instance: this.#instance, data, onLeaseNotClosed: () => saw('lease not closed') },
      drainMs,
    );
    this.hasGivenUp = abandoned > 0;
    if (this.hasGivenUp) saw('given up at the end of a drain');
    this.isDrained = true;
    this.isDead = true;
    saw('drained');
  }

  async #allEnded(): Promise<void> {
    while (this.connections.size > 0) await passed(lookMs);
  }

  #cut(): void {
    if (this.connections.size > 0) this.#world.saw('clients cut in a drain');
    this.hasCut = true;
    for (const connection of this.connections) connection.leave();
  }

  /** A request has come in. */
  take(connection: Connection, requestId: string): void {
    // Cut before anything of it was read.
    if (!this.connections.has(connection)) return;
    const { policy } = this.#world;
    const { req, res } = connection;
    void handle(this.deps, new Exchange(req, res, { policy, requestId, budget: this.deps.budget }));
  }
}

/** By the virtual clock, which stands in for the global timers alone. */
async function passed(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}
