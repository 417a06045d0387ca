import type { ServerResponse } from 'node:http';
import type { Teardown } from '../test/helpers/postgres.ts';
import { until } from '../test/helpers/until.ts';
import { answer, type LoggedUpstream, loggedUpstream, type Respond, type Start } from './logged-upstream.ts';

/** Answers, but for keys that it was told to hold. */
export class HoldingUpstream implements LoggedUpstream {
  readonly #log: LoggedUpstream;
  readonly #toHold: Set<string>;
  readonly #held: Map<string, { start: Start; res: ServerResponse }>;

  private constructor(
    log: LoggedUpstream,
    toHold: Set<string>,
    held: Map<string, { start: Start; res: ServerResponse }>,
  ) {
    this.#log = log;
    this.#toHold = toHold;
    this.#held = held;
  }

  static async start(t: Teardown, respond: Respond = answer): Promise<HoldingUpstream> {
    const toHold = new Set<string>();
    const held = new Map<string, { start: Start; res: ServerResponse }>();
    const log = await loggedUpstream(t, (start, res) => {
      if (toHold.delete(start.key)) held.set(start.key, { start, res });
      else respond(start, res);
    });
    return new HoldingUpstream(log, toHold, held);
  }

  get url(): string {
    return this.#log.url;
  }

  get starts(): readonly Start[] {
    return this.#log.starts;
  }

  startsOf(key: string): readonly Start[] {
    return this.#log.startsOf(key);
  }

  /** The next request of this key; `held` says when it is there. */
  hold(key: string): void {
    this.#toHold.add(key);
  }

  /** Gives back what answers it, now or later: meanwhile the key may be held again. */
  async held(key: string): Promise<() => void> {
    return await until(`${key} upstream`, () => {
      const one = this.#held.get(key);
      if (one === undefined) return null;
      this.#held.delete(key);
      return () => answer(one.start, one.res);
    });
  }
}
