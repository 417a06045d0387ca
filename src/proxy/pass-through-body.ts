import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { Pace, type PaceLimit } from './pace.ts';
import type { Share } from './share.ts';

/**
 * What is held of a body. So much is there, or all of it, before the request takes a connection to the upstream: a client that
 * sends its bytes one by one must not hold one meanwhile.
 */
const heldBytes = 64 * 1024;

interface Listener {
  /** The request may be sent. */
  ready(): void;
  /** No room in memory, or it came too slowly. Only before `ready`. */
  refuse(code: 'overloaded' | 'body_incomplete'): void;
}

/**
 * The client's body on its way to undici, which destroys what it cannot send to the end. Destroying the request itself
 * would cut the client's connection, and with it the upstream's early answer or our 502.
 */
export class RequestBody extends Readable {
  readonly #source: IncomingMessage;
  readonly #share: Share;
  readonly #pace: Pace;
  #listener: Listener | null;
  #countedBytes = 0;

  constructor(source: IncomingMessage, share: Share, listener: Listener, limit?: PaceLimit) {
    super({ highWaterMark: heldBytes });
    this.#source = source;
    this.#share = share;
    this.#listener = listener;
    this.#pace = new Pace(() => this.#slow(), limit);
    // While it is queued undici does not listen yet, and an error that nobody hears would end the process.
    this.on('error', () => {});
    source.on('data', this.#take);
    source.once('end', this.#finish);
    // The client left. Listened to until the end: without a listener Node does not tell.
    source.on('error', (error) => this.destroy(error));
    this.#pace.start();
  }

  /** Since when the client sends too little of it; null: nobody waits for the client. */
  get slowSinceMs(): number | null {
    return this.#pace.slowSinceMs;
  }

  override _read(): void {
    this.#count();
    this.#source.resume();
    this.#pace.start();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    const source = this.#source;
    this.#listener = null;
    this.#pace.stop();
    this.#share.give(this.#countedBytes);
    this.#countedBytes = 0;
    source.off('data', this.#take);
    source.off('end', this.#finish);
    // The rest is thrown away: the client gets to read its answer, and the next request behind it is seen.
    if (!source.readableEnded) source.resume();
    callback(error);
  }

  readonly #take = (chunk: Buffer): void => {
    this.#pace.came(chunk.length);
    // What runs is held up by the upstream where there is no room; what has not begun is refused.
    if (this.#listener !== null && !this.#share.tryTake(0)) return this.#refuse('overloaded');
    const wantsMore = this.push(chunk);
    this.#count();
    if (wantsMore) return;
    // Held up by the upstream, not by the client: then no time runs.
    this.#source.pause();
    this.#pace.stop();
    this.#ready();
  };

  readonly #finish = (): void => {
    this.#pace.stop();
    this.push(null);
    this.#ready();
  };

  #ready(): void {
    const listener = this.#listener;
    this.#listener = null;
    listener?.ready();
  }

  #slow(): void {
    if (this.#listener === null) this.#source.destroy();
    else this.#refuse('body_incomplete');
  }

  #refuse(code: 'overloaded' | 'body_incomplete'): void {
    const listener = this.#listener;
    this.destroy();
    listener?.refuse(code);
  }

  #count(): void {
    const more = this.readableLength - this.#countedBytes;
    this.#countedBytes = this.readableLength;
    if (more > 0) this.#share.take(more);
    else if (more < 0) this.#share.give(-more);
  }
}
