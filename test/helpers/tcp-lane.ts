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
  /** Bytes that may still be delivered, on all connections together; then everything waits. null: no limit. */
  quota: Quota | null;
  /** Most bytes in one write, so that the receiver reads in pieces; 0: as they came. */
  sliceBytes: number;
  /** Milliseconds that a chunk waits before it goes on. */
  delayMs: number;
}

export interface Quota {
  leftBytes: number;
  readonly onSpent: () => void;
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
    for (let chunk = this.#queue.shift(); chunk !== undefined; chunk = this.#queue.shift()) {
      const allowed = this.#spend(chunk.length);
      if (allowed > 0) this.#write(chunk.subarray(0, allowed));
      if (allowed === chunk.length) continue;
      this.#queue.unshift(chunk.subarray(allowed));
      return;
    }
    if (this.#end === 'ended') this.to.end();
    if (this.#end === 'reset') reset(this.to);
  }

  #spend(bytes: number): number {
    const { quota } = this.#orders;
    if (quota === null) return bytes;
    const allowed = Math.min(bytes, quota.leftBytes);
    quota.leftBytes -= allowed;
    if (quota.leftBytes === 0) quota.onSpent();
    return allowed;
  }

  #write(bytes: Buffer): void {
    this.#orders.deliveredBytes += bytes.length;
    const most = this.#orders.sliceBytes || bytes.length;
    for (let from = 0; from < bytes.length; from += most) this.to.write(bytes.subarray(from, from + most));
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
    if (this.#orders.delayMs === 0) this.flush();
    else setTimeout(() => this.flush(), this.#orders.delayMs);
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
