import type { ServerResponse } from 'node:http';
import { Pieces } from './pieces.ts';
import type { Share } from './share.ts';
import { Untaken } from './untaken.ts';

/** What is read ahead of a slow client, where there is memory for it: an answer that is over holds no connection to the upstream. */
const aheadBytes = 1_048_576;

/** The body of a passed-through answer on its way to its client. */
export class Onward {
  readonly #res: ServerResponse;
  readonly #share: Share;
  readonly #stallMs: number | undefined;
  readonly #resume: () => void;
  readonly #pieces = new Pieces();
  /** Once the client did not take all at once. */
  #untaken: Untaken | null = null;
  #isOver = false;

  /** `resume`: the upstream may be read on. */
  constructor(res: ServerResponse, share: Share, stallMs: number | undefined, resume: () => void) {
    this.#res = res;
    this.#share = share;
    this.#stallMs = stallMs;
    this.#resume = resume;
    res.on('drain', () => this.#flow());
    res.once('close', () => this.#untaken?.close());
  }

  /** false: read no more until `resume`. */
  write(chunk: Buffer): boolean {
    const { writableNeedDrain } = this.#res;
    if (!writableNeedDrain && this.#pieces.isEmpty) this.#res.write(chunk);
    else this.#pieces.add(chunk);
    this.#update();
    if (!this.#res.writableNeedDrain) return true;
    return this.#pieces.leftBytes < aheadBytes && this.#share.tryTake(0);
  }

  /** Since when the client took nothing, by `performance.now()`. */
  get tookAtMs(): number | null {
    return this.#untaken === null || this.#untaken.tookAtMs === 0 ? null : this.#untaken.tookAtMs;
  }

  /** Nothing more comes. */
  end(): void {
    this.#isOver = true;
    if (this.#pieces.isEmpty) this.#res.end();
    this.#update();
  }

  #flow(): void {
    for (let piece = this.#pieces.shift(); piece !== undefined; piece = this.#pieces.shift())
      if (!this.#res.write(piece)) break;
    if (this.#isOver && this.#pieces.isEmpty) this.#res.end();
    this.#update();
    if (!this.#isOver) this.#resume();
  }

  #update(): void {
    if (this.#untaken === null) {
      if (this.#res.writableLength === 0) return;
      const behind = { bytes: () => this.#pieces.leftBytes, drop: () => this.#pieces.clear() };
      this.#untaken = new Untaken(this.#share, this.#res, behind, this.#stallMs);
    }
    this.#untaken.update();
  }
}
