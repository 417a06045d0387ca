import type { Socket } from 'node:net';
import { ServerMessages } from './server-messages.ts';

export type Direction = 'toServer' | 'toClient';

/** Bytes wherever they lie in the stream; a look at each chunk; or a message of PostgreSQL's (`serverMessage`). */
export type Match = Buffer | string | ((chunk: Buffer) => boolean) | MessageMatch;

export interface MessageMatch {
  readonly type: string;
  readonly start: string;
}

/** One set of orders per direction, shared by all connections of a proxy. */
export interface Orders {
  readonly direction: Direction;
  paused: boolean;
  deliveredBytes: number;
  readonly armed: Set<Armed>;
}

export interface Armed {
  readonly match: Match;
  /** Says what becomes of the chunk that completed the match. */
  fire(lane: Lane): 'drop' | 'queue';
}

/** One direction of one connection: from → to, through a queue that orders can stop. */
export class Lane {
  readonly to: Socket;
  readonly #orders: Orders;
  readonly #queue: Buffer[] = [];
  readonly #tails = new Map<Armed, Buffer>();
  readonly #messages = new ServerMessages();
  #held = false;
  #end: 'open' | 'ended' | 'reset' = 'open';

  constructor(from: Socket, to: Socket, orders: Orders) {
    this.to = to;
    this.#orders = orders;
    from.on('data', (chunk: Buffer) => {
      this.#take(chunk);
      if (!to.writableNeedDrain) return;
      from.pause();
      to.once('drain', () => from.resume());
    });
    from.on('end', () => this.#finish('ended'));
    from.on('error', () => this.#finish('reset'));
  }

  hold(): void {
    this.#held = true;
  }

  release(): void {
    this.#held = false;
    this.flush();
  }

  flush(): void {
    if (this.#held || this.#orders.paused || this.to.destroyed) return;
    for (const chunk of this.#queue.splice(0)) {
      this.#orders.deliveredBytes += chunk.length;
      this.to.write(chunk);
    }
    if (this.#end === 'ended') this.to.end();
    if (this.#end === 'reset') reset(this.to);
  }

  #finish(end: 'ended' | 'reset'): void {
    this.#end = end;
    this.flush();
  }

  #take(chunk: Buffer): void {
    const messages = this.#orders.direction === 'toClient' ? this.#messages.feed(chunk) : [];
    for (const armed of this.#orders.armed) {
      if (!this.#completes(armed, chunk, messages)) continue;
      this.#orders.armed.delete(armed);
      if (armed.fire(this) === 'drop') return;
    }
    this.#queue.push(chunk);
    this.flush();
  }

  #completes(armed: Armed, chunk: Buffer, messages: ReturnType<ServerMessages['feed']>): boolean {
    const { match } = armed;
    if (typeof match === 'function') return match(chunk);
    if (typeof match === 'string' || Buffer.isBuffer(match)) {
      const wanted = Buffer.from(match);
      const seen = Buffer.concat([this.#tails.get(armed) ?? Buffer.alloc(0), chunk]);
      this.#tails.set(armed, Buffer.from(seen.subarray(Math.max(0, seen.length - wanted.length + 1))));
      return seen.includes(wanted);
    }
    return messages.some(
      ({ type, start }) => type === match.type && start.toString('latin1').startsWith(match.start),
    );
  }
}

/** A reset while the end is still being sent leaves the socket open for ever, and Node 20 spins at its exit for it. */
export function reset(socket: Socket): void {
  if (socket.writableEnded && !socket.writableFinished) socket.destroy();
  else socket.resetAndDestroy();
}
