import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';

const highWaterMark = 64 * 1024;

/**
 * The client's body on its way to undici, which destroys what it cannot send to the end. Destroying the request itself
 * would cut the client's connection, and with it the upstream's early answer or our 502.
 */
export class RequestBody extends Readable {
  readonly #source: IncomingMessage;

  constructor(source: IncomingMessage) {
    super({ highWaterMark });
    this.#source = source;
    source.on('data', this.#take);
    source.once('end', this.#finish);
    // The client left. Listened to until the end: without a listener Node does not tell.
    source.on('error', (error) => this.destroy(error));
  }

  override _read(): void {
    this.#source.resume();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    const source = this.#source;
    source.off('data', this.#take);
    source.off('end', this.#finish);
    // The rest is thrown away: the client gets to read its answer, and the next request behind it is seen.
    if (!source.readableEnded) source.resume();
    callback(error);
  }

  readonly #take = (chunk: Buffer): void => {
    if (!this.push(chunk)) this.#source.pause();
  };

  readonly #finish = (): void => {
    this.push(null);
  };
}
