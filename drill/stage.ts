import type { Teardown } from '../test/helpers/postgres.ts';

/** Everything that a drill has started. `strike` stops it, the last thing first, however far the drill came. */
export class Stage implements Teardown {
  readonly #undo: (() => unknown)[] = [];
  #striking: Promise<void> | null = null;

  teardown(fn: () => unknown): void {
    if (this.#striking === null) this.#undo.push(fn);
    // Started while everything was being stopped: Ctrl-C came during a start.
    else this.#striking = this.#striking.then(() => attempt(fn));
  }

  /** May be called twice. */
  strike(): Promise<void> {
    this.#striking ??= this.#strike();
    return this.#striking;
  }

  async #strike(): Promise<void> {
    for (const step of this.#undo.reverse()) await attempt(step);
  }
}

/** What cannot be stopped must not keep the rest running. */
async function attempt(step: () => unknown): Promise<void> {
  try {
    await step();
  } catch (error) {
    process.stderr.write(`while stopping: ${(error as Error).message}\n`);
  }
}
