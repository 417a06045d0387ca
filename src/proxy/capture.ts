import type { ServerResponse } from 'node:http';
import type { Memos } from '../core/memos.ts';
import { clientHeaders } from '../core/response.ts';
import type { Ending } from '../core/settle.ts';
import { type AnswerHead, answered } from '../upstream/answer-head.ts';
import type { AnswerSink, UpstreamCall } from '../upstream/client.ts';
import { Arriving } from './arriving.ts';
import { cutAnswer } from './cut-answer.ts';
import { HeldUp, type Patience, usualPatience } from './patience.ts';
import { Pieces } from './pieces.ts';
import type { Share } from './share.ts';
import { Untaken } from './untaken.ts';

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

interface Client {
  readonly share: Share;
  readonly res: ServerResponse;
}

/** Holds an answer until it is settled. One that is too large is handed on in pieces. */
export class Capture implements AnswerSink {
  readonly #limitBytes: number;
  readonly #client: Client;
  readonly #patience: Patience;
  readonly #resolve: (captured: Captured) => void;
  readonly captured: Promise<Captured>;
  #call: UpstreamCall | null = null;
  #head: AnswerHead | null = null;
  readonly #pieces = new Pieces();
  #large = false;
  #ending: Ending | null = null;
  #onEnding: ((ending: Ending) => void) | null = null;
  #lengthBytes: number | null = null;
  #receivedBytes = 0;
  /** The client gets the end of its answer only after `letEnd`. */
  #isEndHeld = false;
  /** With a length the last bytes are the end: they are kept back. */
  #last: Buffer | null = null;
  #res: ServerResponse | null = null;
  #discarding = false;
  #streamed: (() => void) | null = null;
  /** Of a large one: all that is held of it. */
  #untaken: Untaken | null = null;
  /** What is held until the record is settled; nothing of a large answer, which is not kept. */
  readonly arriving: Arriving;

  /** How long the client of a large one holds the upstream up. */
  readonly #heldUp: HeldUp;

  constructor(limitBytes: number, client: Client, patience = usualPatience) {
    this.#limitBytes = limitBytes;
    this.#client = client;
    this.arriving = new Arriving(client.share.budget, () => this.#call?.resume());
    this.#patience = patience;
    this.#heldUp = new HeldUp(patience.heldMs, () => this.#untaken?.drop());
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
    this.#receivedBytes += chunk.length;
    if (this.#isEndHeld && this.#receivedBytes === this.#lengthBytes) {
      this.#last = chunk;
      this.#untaken?.update();
      return true;
    }
    // What came before it goes first.
    if (this.#res !== null && this.#pieces.isEmpty) return this.#pass(this.#res, chunk);
    this.#pieces.add(chunk);
    const hasRoom = this.arriving.add(chunk.length);
    if (this.#pieces.bytes <= this.#limitBytes || this.#head === null) return hasRoom;
    if (!this.#large) this.#becomeLarge(this.#head);
    this.#untaken?.update();
    return this.#mayGoOn(false);
  }

  /** false: the client has not taken what is there, and the upstream is held up by that. */
  #mayGoOn(isTaken: boolean): boolean {
    if (isTaken || this.#discarding) return true;
    this.#heldUp.begin();
    return false;
  }

  /** The client is cut. What is stored it gets by asking again; of what is not it has the head. */
  makeWay(): boolean {
    if (!this.#heldUp.isCounting || this.#untaken === null) return false;
    this.#untaken.drop();
    return true;
  }

  #goOn(): void {
    this.#heldUp.end();
    this.#call?.resume();
  }

  #becomeLarge(head: AnswerHead): void {
    this.#large = true;
    this.arriving.close();
    const behind = {
      bytes: () => this.#pieces.leftBytes + (this.#last?.length ?? 0),
      drop: () => this.discard(),
    };
    this.#untaken = new Untaken(this.#client.share, this.#client.res, behind, this.#patience.stallMs);
    this.#resolve({ kind: 'large', ending: answered(head), head });
  }

  onEnd(ending: Ending): void {
    this.#ending = ending;
    if (!this.#large) {
      this.#resolve({ kind: 'whole', ending, head: this.#head, body: this.#pieces.whole() });
      return;
    }
    // With the answer's end in hand nobody is held up.
    this.#heldUp.end();
    this.#onEnding?.(ending);
    this.#endIfNext();
  }

  /**
   * For a large answer that is settled only after its last byte: how it ended. The client may have all before its end meanwhile;
   * the end itself waits for `letEnd`, so that a client that has it all finds its key settled.
   */
  endedBeforeClient(): Promise<Ending> {
    this.#isEndHeld = true;
    this.#heldUp.atMost(this.#patience.heldUnsettledMs);
    this.#lengthBytes = lengthOf(this.#head);
    if (this.#receivedBytes === this.#lengthBytes) this.#last = this.#pieces.pop() ?? null;
    return this.ended();
  }

  /** Of a large answer: how it ended, whether or not its client took it. */
  ended(): Promise<Ending> {
    return new Promise((resolve) => {
      if (this.#ending !== null) resolve(this.#ending);
      else this.#onEnding = resolve;
    });
  }

  letEnd(): void {
    this.#isEndHeld = false;
    this.#endIfNext();
  }

  #endIfNext(): void {
    if (this.#res === null || this.#ending === null || this.#isEndHeld) return;
    // One that was cut will never be whole: nobody need wait for the rest of it.
    if (this.#pieces.isEmpty || this.#ending.kind !== 'answered') this.#finish(this.#res, this.#ending);
  }

  /** With the upstream's own length, to which it is held: only that shows an HTTP/1.0 client a cut answer as cut. */
  clientHeaders(memos: Memos): string[] {
    const length = lengthOf(this.#head);
    const framing = length === null ? [] : ['Content-Length', String(length)];
    return [...clientHeaders(memos, this.#head?.headers ?? []), ...framing];
  }

  /** Resolves when the client has everything, or has gone. */
  async streamTo(res: ServerResponse, headers: string[]): Promise<void> {
    if (res.destroyed) return this.discard();
    // Nothing can be said any more: what was to be handed on is gone.
    if (this.#discarding) return void res.req.socket.destroy();
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
    this.#last = null;
    this.#untaken?.close();
    this.#streamed?.();
    this.#goOn();
  }

  #pass(res: ServerResponse, chunk: Buffer): boolean {
    const flowing = res.write(chunk);
    this.#untaken?.update();
    return this.#mayGoOn(flowing);
  }

  /** What was held goes piece by piece: written at once, a client that takes it slowly would seem to take nothing. */
  #flow(res: ServerResponse): void {
    for (let piece = this.#pieces.shift(); piece !== undefined; piece = this.#pieces.shift())
      if (!res.write(piece)) return this.#untaken?.update();
    this.#untaken?.update();
    if (this.#ending !== null) this.#endIfNext();
    else this.#goOn();
  }

  #finish(res: ServerResponse, ending: Ending): void {
    // A cut answer must look cut: ending it in good order would pass it off as whole.
    if (ending.kind !== 'answered') cutAnswer(res);
    else if (this.#last === null) res.end();
    else res.end(this.#last);
    this.#last = null;
    this.#untaken?.update();
    this.#streamed?.();
  }
}

/** null: the upstream framed it otherwise. */
function lengthOf(head: AnswerHead | null): number | null {
  const all = head?.headers ?? [];
  const valueOf = (wanted: string) => all.find((_, i) => i % 2 === 1 && all[i - 1]?.toLowerCase() === wanted);
  const length = valueOf('transfer-encoding') === undefined ? valueOf('content-length') : undefined;
  return length === undefined ? null : Number(length);
}
