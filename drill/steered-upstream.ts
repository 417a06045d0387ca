import type { ServerResponse } from 'node:http';
import type { Teardown } from '../test/helpers/postgres.ts';
import { until } from '../test/helpers/until.ts';
import { bodyOf, type LoggedUpstream, loggedUpstream, type Start } from './logged-upstream.ts';

/** One request that has reached the upstream, and what may be done to it. */
export class Arrived {
  readonly #start: Start;
  readonly #res: ServerResponse;

  constructor(start: Start, res: ServerResponse) {
    this.#start = start;
    this.#res = res;
  }

  get body(): string {
    return bodyOf(this.#start);
  }

  /** Whether whoever asked has gone. */
  get isAlone(): boolean {
    return this.#res.destroyed || this.#res.closed;
  }

  sendHead(): void {
    const headers = { 'Content-Type': 'application/json', Location: `/starts/${this.#start.number}` };
    this.#res.writeHead(201, { ...headers, 'Content-Length': this.body.length }).flushHeaders();
  }

  /** One byte of the body; gives back whether there are more. */
  drip(at: number): boolean {
    this.#res.write(this.body.charAt(at));
    return at + 1 < this.body.length;
  }

  /** In the middle of the answer. */
  cut(): void {
    this.#res.destroy();
  }

  answer(): void {
    if (!this.#res.headersSent) this.sendHead();
    this.#res.end(this.body);
  }

  end(): void {
    this.#res.end();
  }
}

/** Does nothing by itself: every request waits to be taken. */
export class SteeredUpstream {
  readonly #log: LoggedUpstream;
  readonly #waiting: Map<string, Arrived[]>;

  private constructor(log: LoggedUpstream, waiting: Map<string, Arrived[]>) {
    this.#log = log;
    this.#waiting = waiting;
  }

  static async start(t: Teardown): Promise<SteeredUpstream> {
    const waiting = new Map<string, Arrived[]>();
    const log = await loggedUpstream(t, (start, res) => {
      waiting.set(start.key, [...(waiting.get(start.key) ?? []), new Arrived(start, res)]);
    });
    return new SteeredUpstream(log, waiting);
  }

  get url(): string {
    return this.#log.url;
  }

  startsOf(key: string): readonly Start[] {
    return this.#log.startsOf(key);
  }

  async take(key: string): Promise<Arrived> {
    return await until(`${key} upstream`, () => this.#waiting.get(key)?.shift());
  }
}
