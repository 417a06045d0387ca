import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';

const highWaterMark = 64 * 1024;

/** Milliseconds for a client to send anything of a body that we wait for; else it would hold an upstream's connection. */
const idleMs = 60_000;

/**
 * The client's body on its way to undici, which destroys what it cannot send to the end. Destroying the request itself
 * would cut the client's connection, and with it the upstream's early answer or our 502.
 */
export class RequestBody extends Readable {
  readonly #source: IncomingMessage;
  readonly #idleMs: number;
  #idle: NodeJS.Timeout | undefined;

  constructor(source: IncomingMessage, idleAfterMs = idleMs) {
    super({ highWaterMark });
    this.#source = source;
    this.#idleMs = idleAfterMs;
    // While it is queued undici does not listen yet, and an error that nobody hears would end the process.
    this.on('error', () => {});
    source.on('data', this.#take);
    source.once('end', this.#finish);
    // The client left. Listened to until the end: without a listener Node does not tell.
    source.on('error', (error) => this.destroy(error));
  }

  override _read(): void {
    this.#source.resume();
    this.#awaitMore();
  }

  #awaitMore(): void {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.#source.destroy(), this.#idleMs);
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    const source = this.#source;
    clearTimeout(this.#idle);
    source.off('data', this.#take);
    source.off('end', this.#finish);
    // The rest is thrown away: the client gets to read its answer, and the next request behind it is seen.
    if (!source.readableEnded) source.resume();
    callback(error);
  }

  readonly #take = (chunk: Buffer): void => {
    // Held up by the upstream, not by the client: then no time runs.
    clearTimeout(this.#idle);
    if (this.push(chunk)) this.#awaitMore();
    else this.#source.pause();
  };

  readonly #finish = (): void => {
    clearTimeout(this.#idle);
    this.push(null);
  };
}
