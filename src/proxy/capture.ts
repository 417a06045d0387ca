import type { ServerResponse } from 'node:http';
import { clientHeaders } from '../core/response.ts';
import type { Ending } from '../core/settle.ts';
import { type AnswerHead, answered } from '../upstream/answer-head.ts';
import type { AnswerSink, UpstreamCall } from '../upstream/client.ts';
import { Pieces } from './pieces.ts';

/** How the one dispatch ended, as far as the record is concerned. */
export type Captured =
  | {
      readonly kind: 'whole';
      readonly ending: Ending;
      readonly head: AnswerHead | null;
      readonly body: Buffer;
    }
  /** More than may be stored: the ending is that of the head, the rest waits in the upstream's socket. */
  | { readonly kind: 'large'; readonly ending: Ending; readonly head: AnswerHead };

/**
 * Milliseconds without the client taking a byte, after which the rest is read and thrown away. Shorter than upstreams
 * are usually given for the whole answer: else that time would end first, and the upstream be cut.
 */
const defaultStallMs = 10_000;

/** Holds an answer until it is settled. One that is too large is handed on in pieces, after it was settled. */
export class Capture implements AnswerSink {
  readonly #limitBytes: number;
  readonly #hold: (bytes: number) => void;
  readonly #stallMs: number;
  readonly #resolve: (captured: Captured) => void;
  readonly captured: Promise<Captured>;
  #call: UpstreamCall | null = null;
  #head: AnswerHead | null = null;
  readonly #pieces = new Pieces();
  #large = false;
  #ending: Ending | null = null;
  #res: ServerResponse | null = null;
  #discarding = false;
  #streamed: (() => void) | null = null;
  #stall: NodeJS.Timeout | null = null;

  /** `hold` is told of each piece that is kept until the record is settled. */
  constructor(limitBytes: number, hold: (bytes: number) => void, stallMs = defaultStallMs) {
    this.#limitBytes = limitBytes;
    this.#hold = hold;
    this.#stallMs = stallMs;
    let resolve: (captured: Captured) => void = () => {};
    this.captured = new Promise((give) => {
      resolve = give;
    });
    this.#resolve = resolve;
  }

  /** The call whose reading this capture may stop and go on with. */
  attach(call: UpstreamCall): void {
    this.#call = call;
  }

  onHead(head: AnswerHead): void {
    this.#head = head;
  }

  onData(chunk: Buffer): boolean {
    if (this.#discarding) return true;
    // What came before it goes first.
    if (this.#res !== null && this.#pieces.isEmpty) return this.#pass(this.#res, chunk);
    this.#pieces.add(chunk);
    this.#hold(chunk.length);
    if (this.#pieces.bytes <= this.#limitBytes || this.#head === null) return true;
    if (!this.#large) {
      this.#large = true;
      this.#resolve({ kind: 'large', ending: answered(this.#head), head: this.#head });
    }
    return false;
  }

  onEnd(ending: Ending): void {
    this.#ending = ending;
    if (!this.#large) {
      this.#resolve({ kind: 'whole', ending, head: this.#head, body: this.#pieces.whole() });
      return;
    }
    // One that was cut will never be whole: nobody need wait for the rest of it.
    const isNext = this.#pieces.isEmpty || ending.kind !== 'answered';
    if (this.#res !== null && isNext) this.#finish(this.#res, ending);
  }

  /** With the upstream's own length, to which it is held: only that shows an HTTP/1.0 client a cut answer as cut. */
  clientHeaders(): string[] {
    const all = this.#head?.headers ?? [];
    const valueOf = (wanted: string) =>
      all.find((_, i) => i % 2 === 1 && all[i - 1]?.toLowerCase() === wanted);
    const length = valueOf('transfer-encoding') === undefined ? valueOf('content-length') : undefined;
    return [...clientHeaders(all), ...(length === undefined ? [] : ['Content-Length', length])];
  }

  /** Only after the record was settled. Resolves when the client has everything, or has gone. */
  async streamTo(res: ServerResponse, headers: string[]): Promise<void> {
    if (res.destroyed) return this.discard();
    await new Promise<void>((resolve) => {
      this.#streamed = resolve;
      this.#res = res;
      res.once('close', () => this.discard());
      res.on('drain', () => this.#flow(res));
      res.writeHead(this.#head?.status ?? 502, headers);
      this.#flow(res);
    });
  }

  /** The rest is read and thrown away: the upstream must not be held up by a client. */
  discard(): void {
    this.#discarding = true;
    this.#pieces.clear();
    this.#unwatch();
    this.#streamed?.();
    this.#call?.resume();
  }

  #pass(res: ServerResponse, chunk: Buffer): boolean {
    const flowing = res.write(chunk);
    if (!flowing) this.#watch(res);
    return flowing;
  }

  /** What was held goes piece by piece: written at once, a client that takes it slowly would seem to take nothing. */
  #flow(res: ServerResponse): void {
    this.#unwatch();
    for (let piece = this.#pieces.shift(); piece !== undefined; piece = this.#pieces.shift())
      if (!res.write(piece)) return this.#watch(res);
    if (this.#ending !== null) this.#finish(res, this.#ending);
    else this.#call?.resume();
  }

  #finish(res: ServerResponse, ending: Ending): void {
    // A cut answer must look cut: ending it in good order would pass it off as whole.
    if (ending.kind === 'answered') res.end();
    else res.destroy();
    this.#streamed?.();
  }

  #watch(res: ServerResponse): void {
    this.#unwatch();
    this.#stall = setTimeout(() => {
      // Said here too: a pipelined answer that has no socket yet never closes.
      this.discard();
      res.destroy();
    }, this.#stallMs);
  }

  #unwatch(): void {
    if (this.#stall !== null) clearTimeout(this.#stall);
    this.#stall = null;
  }
}
