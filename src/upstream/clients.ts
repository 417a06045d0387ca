import type { UpstreamTarget } from '../core/policy.ts';
import { UpstreamClient, type UpstreamClientOptions } from './client.ts';

/** One client, and so one pool, per origin: made when it is first needed, and shared by all routes to that origin. */
export class Clients {
  readonly #options: UpstreamClientOptions;
  /** A request finds its client by the object that its policy holds: an origin is compared only the first time. */
  readonly #byTarget = new Map<UpstreamTarget, UpstreamClient>();
  readonly #byOrigin = new Map<string, UpstreamClient>();

  constructor(options: UpstreamClientOptions = {}) {
    this.#options = options;
  }

  readonly for = (target: UpstreamTarget): UpstreamClient => {
    let client = this.#byTarget.get(target) ?? this.#byOrigin.get(target.origin);
    if (client === undefined) {
      client = new UpstreamClient(target, this.#options);
      this.#byOrigin.set(target.origin, client);
    }
    this.#byTarget.set(target, client);
    return client;
  };

  /** Ends every call now. */
  async destroy(): Promise<void> {
    await Promise.all([...this.#byOrigin.values()].map((client) => client.destroy()));
  }
}
