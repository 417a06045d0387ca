import type { ServerResponse } from 'node:http';
import { cutAnswer } from './cut-answer.ts';
import type { Share } from './share.ts';

/**
 * Milliseconds without the client taking anything of what is there for it, after which it is cut. Linux says that more can be written
 * only when a third of a socket's send buffer is free, and that may have 4 MB: a client that reads 25 kB/s seems to take nothing for 53 s.
 */
export const defaultStallMs = 60_000;
/** An answer up to this size may wait for its turn on its connection for as long as that takes. */
const patientBytes = 65_536;
/** Looks in that time. */
const looks = 4;

/** What waits for the client beside what Node holds of it. */
interface Behind {
  readonly bytes: () => number;
  /** Called before the client is cut. */
  readonly drop: () => void;
}

/**
 * What a client has still to take of its answer counts as held. A client that takes nothing is cut, and when memory runs out so
 * are those that have taken nothing for the longest: what is stored they get by asking again.
 */
export class Untaken {
  readonly #share: Share;
  readonly #res: ServerResponse;
  readonly #behind: Behind | null;
  readonly #stallMs: number;
  #bytes = 0;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;
  #passedOnBytes = 0;
  /** By `performance.now()`; 0: nothing waits for it. */
  tookAtMs = 0;

  constructor(share: Share, res: ServerResponse, behind: Behind | null, stallMs = defaultStallMs) {
    this.#share = share;
    this.#res = res;
    this.#behind = behind;
    this.#stallMs = stallMs;
  }

  get address(): string {
    return this.#share.address;
  }

  /** Something was written, or taken. The client may be cut before this returns. */
  update(): void {
    if (this.#isClosed) return;
    const bytes = this.#res.writableLength + (this.#behind?.bytes() ?? 0);
    const more = bytes - this.#bytes;
    this.#bytes = bytes;
    if (more > 0) this.#share.take(more);
    else if (more < 0) this.#share.give(-more);
    if (bytes === 0) this.#rest();
    // Nobody is left to take it, and of an answer that waits for its turn nobody would hear so.
    else if (this.#res.req.socket.destroyed) this.drop();
    else {
      if (this.tookAtMs === 0 || this.#passedOn() > this.#passedOnBytes) this.#took();
      // Until the head is out the client waits for us.
      if (this.#timer === undefined && this.#res.headersSent) this.#watch();
      this.#share.budget.squeeze();
    }
  }

  /** Cuts the connection too: the answer may still wait for its turn on it. */
  drop(): void {
    this.close();
    this.#behind?.drop();
    cutAnswer(this.#res);
    this.#res.req.socket.destroy();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#rest();
    if (this.#bytes > 0) this.#share.give(this.#bytes);
  }

  look(): void {
    this.update();
    if (this.#timer === undefined) return;
    if (this.#waitsForItsTurn) this.#took();
    if (performance.now() - this.tookAtMs >= this.#stallMs) this.drop();
    else this.#timer = setTimeout(look, this.#stallMs / looks, this);
  }

  /** Behind a slow request on its connection. A large one is not waited with: it would hold that memory for as long. */
  get #waitsForItsTurn(): boolean {
    return this.#res.socket === null && this.#bytes <= patientBytes;
  }

  #watch(): void {
    this.#timer = setTimeout(look, this.#stallMs / looks, this);
    this.#took();
  }

  #took(): void {
    this.#passedOnBytes = this.#passedOn();
    this.tookAtMs = performance.now();
    this.#share.budget.leave(this);
  }

  #rest(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.tookAtMs = 0;
    this.#share.budget.left(this);
  }

  /** Bytes that the system has, of all that was ever written on this connection. */
  #passedOn(): number {
    const { socket } = this.#res.req;
    return socket.bytesWritten - socket.writableLength;
  }
}

function look(untaken: Untaken): void {
  untaken.look();
}
