import { asError } from '../errors.ts';

export interface ReadinessDeps {
  /** null while this instance takes work; else why it does not. */
  readonly notServing: () => string | null;
  /** Rejects with the reason when the store takes no reservations. */
  readonly checkStore: () => Promise<void>;
}

/** Milliseconds one look at the store counts: probes of several kinds must not add load. */
const checkLifeMs = 1_000;

/** Why requests should go elsewhere; null: they are welcome. */
export class Readiness {
  readonly #deps: ReadinessDeps;
  #checkedMs = Number.NEGATIVE_INFINITY;
  #checked: Promise<string | null> = Promise.resolve(null);

  constructor(deps: ReadinessDeps) {
    this.#deps = deps;
  }

  async notReady(): Promise<string | null> {
    return this.#deps.notServing() ?? (await this.#storeFault());
  }

  #storeFault(): Promise<string | null> {
    if (performance.now() - this.#checkedMs > checkLifeMs) {
      this.#checkedMs = performance.now();
      this.#checked = this.#deps.checkStore().then(
        () => null,
        (error) => `the store takes no reservations: ${asError(error).message}`,
      );
    }
    return this.#checked;
  }
}
