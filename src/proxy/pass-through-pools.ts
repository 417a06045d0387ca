import { type Client, type Dispatcher, Pool } from 'undici';
import type { UpstreamTarget } from '../core/policy.ts';
import { certificateName, connectorFor } from '../upstream/connector.ts';
import { SteadyClient } from '../upstream/steady-client.ts';
import { type Turn, Turns } from '../upstream/turns.ts';

/** Longer than a connection ever takes where it will succeed. */
const maxConnectMs = 10_000;

/** As for guarded requests: idle connections end on our side first, for we do not send again what met the upstream's close. */
const keepAlive = { keepAliveTimeout: 4_000, keepAliveTimeoutThreshold: 2_000, keepAliveMaxTimeout: 30_000 };

interface Entry {
  readonly pool: Pool;
  /** Constant, or undici would take it from each request's Host and reconnect whenever that changes. */
  readonly servername: string | null;
  readonly turns: Turns<Turn>;
}

export type PassThroughDispatch = Dispatcher.DispatchOptions & { servername?: string };

/** One pool an origin, apart from those of guarded requests: neither can starve the other. */
export class PassThroughPools {
  readonly #entries = new Map<string, Entry>();

  constructor(targets: readonly UpstreamTarget[]) {
    for (const { origin } of targets) {
      if (this.#entries.has(origin)) continue;
      const sharing = targets.filter((target) => target.origin === origin);
      this.#entries.set(origin, openPool(origin, sharing));
    }
  }

  /** It starts at once, or when a connection is free. false: too many wait. */
  add(target: UpstreamTarget, turn: Turn): boolean {
    return this.#entryOf(target).turns.add(turn);
  }

  /** It needs no connection any more. */
  remove(target: UpstreamTarget, turn: Turn): void {
    this.#entryOf(target).turns.remove(turn);
  }

  dispatch(target: UpstreamTarget, options: PassThroughDispatch, handler: Dispatcher.DispatchHandler): void {
    const { pool, servername } = this.#entryOf(target);
    if (servername !== null) options.servername = servername;
    pool.dispatch(options, handler);
  }

  #entryOf(target: UpstreamTarget): Entry {
    const entry = this.#entries.get(target.origin);
    if (entry === undefined) throw new Error(`no pool for ${target.origin}`);
    return entry;
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#entries.values()].map(({ pool }) => pool.destroy()));
  }
}

/** Routes may share an origin and differ in the rest: the most generous rules, timeouts are set for each request. */
function openPool(origin: string, sharing: readonly UpstreamTarget[]): Entry {
  const url = new URL(origin);
  const timeoutMs = Math.max(...sharing.map((target) => target.timeoutMs));
  const connections = Math.max(...sharing.map((target) => target.connections));
  const pool = new Pool(url, {
    connect: connectorFor(url, Math.min(timeoutMs, maxConnectMs), {}),
    factory: (to, settings) => new SteadyClient(to, settings as Client.Options),
    connections,
    // With more than one undici sends a request again whose forerunner broke the connection.
    pipelining: 1,
    allowH2: false,
    maxResponseSize: -1,
    ...keepAlive,
  });
  const servername = url.protocol === 'https:' ? (certificateName(url) ?? url.hostname) : null;
  return { pool, servername, turns: new Turns(connections) };
}
