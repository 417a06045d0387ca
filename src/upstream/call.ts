import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Ending } from '../core/settle.ts';
import { asError } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { type AnswerHead, answered, isBodiless, readHead } from './answer-head.ts';
import { CallClock } from './call-clock.ts';
import type { AnswerSink, UpstreamCall, UpstreamRequest } from './client.ts';
import { endingOfFailure, UpstreamFault } from './failure.ts';
import { type HoldableSocket, hold, letGo, socketBeingRead } from './hold.ts';
import { endedInOrder } from './orderly-end.ts';
import type { Turn } from './turns.ts';

/** Far above any real answer; below it 64 kB of empty fields would become 16,000 strings. */
const maxHeaderFields = 1_000;

export interface CallOwner {
  /** A connection is free for it. */
  send(call: Call, options: CallOptions): void;
  ended(call: Call): void;
  sinkFailed(error: Error): void;
}

export type CallOptions = Dispatcher.DispatchOptions & { servername?: string };

/**
 * One dispatch: undici's handler and the caller's handle in one object. It is a handler of the older kind: round the newer one
 * undici 7 wraps an older one, and makes an object of all header fields that nobody looks at. `onConnect` is its request-start.
 * What was read in undici 7.30.2 and is leaned on:
 * - writeH1 calls request-start before its first write, and writes nothing once the request counts as aborted. An error
 *   thrown in request-start does that and keeps the connection; `abort()` would destroy a healthy one for each request
 *   that timed out in the queue.
 * - Its queue has no removal: a call that ends while a connection is being opened for it still reaches request-start later, and is
 *   refused there. Those that wait for a connection to be free wait in turns.ts.
 * - A running request is put back and written a second time when its socket closes with UND_ERR_INFO. undici itself
 *   closes so only while nothing runs, or after it failed the request; request-start refuses a second start all the same.
 * - An error may come before request-start (refused, TLS, bad header).
 */
export class Call implements Dispatcher.DispatchHandler, UpstreamCall, Turn {
  place = -1;
  queuedAtMs = 0;
  readonly #owner: CallOwner;
  readonly #request: UpstreamRequest;
  readonly #sink: AnswerSink;
  readonly #options: CallOptions;
  readonly #clock: CallClock;
  /** Given at request-start: null as long as nothing was sent. */
  #abort: ((reason: Error) => void) | null = null;
  #socket: HoldableSocket | null = null;
  #head: AnswerHead | null = null;
  #status: number | null = null;
  #ending: Ending | null = null;
  #dispatched = false;

  constructor(owner: CallOwner, request: UpstreamRequest, sink: AnswerSink, options: CallOptions) {
    this.#owner = owner;
    this.#request = request;
    this.#sink = sink;
    this.#options = options;
    this.#clock = new CallClock(request.timeoutMs, () =>
      this.abort(new UpstreamFault('timed_out', 'no complete answer in time')),
    );
  }

  /** `wait` starts it at once or later. The sink hears nothing before this returns. */
  dispatch(wait: (call: Call) => boolean): void {
    this.#clock.start();
    if (!wait(this)) this.refuse();
    failpoint('queued');
    this.#dispatched = true;
    if (this.#ending !== null) queueMicrotask(() => this.#deliver());
  }

  get address(): string {
    return this.#request.address;
  }

  refuse(): void {
    this.#fail(new UpstreamFault('no_room', 'too many requests wait for a connection'));
  }

  start(): void {
    try {
      this.#owner.send(this, this.#options);
    } catch (thrown) {
      this.#fail(asError(thrown));
    }
  }

  get slowSinceMs(): number | null {
    return this.#clock.heldSinceMs;
  }

  makeWay(): boolean {
    return this.#sink.makeWay();
  }

  /** Instead of `dispatch`. */
  fail(reason: Error): void {
    this.#fail(reason);
    this.#dispatched = true;
    queueMicrotask(() => this.#deliver());
  }

  resume(): void {
    if (this.#socket === null || this.#ending !== null) return;
    letGo(this.#socket);
    this.#clock.letGo();
  }

  abort(reason: Error): void {
    if (this.#ending !== null) return;
    // Synchronously runs onError; not at all where undici thinks the request is over.
    this.#abort?.(reason);
    this.#fail(reason);
  }

  onConnect(abort: (reason?: Error) => void): void {
    if (this.#abort !== null)
      throw new UpstreamFault('started_twice', 'undici tried to send the request again');
    if (this.#ending !== null) throw new UpstreamFault('start_refused', 'the call ended while it was queued');
    const mayStart = this.#request.mayStart();
    // mayStart is the caller's code: it may have aborted this very call.
    if (!mayStart || this.#ending !== null)
      throw new UpstreamFault('start_refused', 'the attempt may no longer start');
    this.#abort = abort;
    this.#clock.sent();
    failpoint('request_start');
  }

  /** Always true, here and in `onData`: undici is never asked to pause. */
  onHeaders(status: number, raw: Buffer[]): boolean {
    // 102, 103: the final answer follows. 100 never comes here: undici takes it for a fault unless it was asked for.
    if (this.#ending === null && (status < 102 || status > 199)) this.#takeHead(status, raw);
    return true;
  }

  #takeHead(status: number, raw: readonly Buffer[]): void {
    failpoint('response_head');
    this.#status = status;
    if (status < 200 || status > 599)
      return this.abort(new UpstreamFault('status_invalid', `upstream answered status ${status}`));
    if (raw.length > 2 * maxHeaderFields)
      return this.abort(new UpstreamFault('head_too_large', 'too many header fields'));
    this.#socket = socketBeingRead();
    this.#head = readHead(this.#request.method, status, raw);
    try {
      this.#sink.onHead(this.#head);
    } catch (thrown) {
      return this.#sinkFailed(thrown);
    }
    // Now, since undici fails a 204 that claims a length.
    if (isBodiless(status)) this.#finish(answered(this.#head));
  }

  onData(chunk: Buffer): boolean {
    if (this.#ending === null) this.#takeData(chunk);
    return true;
  }

  #takeData(chunk: Buffer): void {
    failpoint('response_data');
    try {
      // The end may come in this same chunk, and lets go again.
      if (this.#sink.onData(chunk) || this.#socket === null || this.#ending !== null) return;
      hold(this.#socket);
      this.#clock.hold();
    } catch (thrown) {
      this.#sinkFailed(thrown);
    }
  }

  onComplete(): void {
    const head = this.#head;
    if (head === null) return this.#fail(new UpstreamFault('answer_cut', 'the answer ended without a head'));
    if (head.closeFramed && !endedInOrder(this.#socket)) {
      const cause = this.#socket?.errored;
      return this.#fail(new UpstreamFault('answer_cut', 'reset before the end of the answer', { cause }));
    }
    this.#finish(answered(head));
  }

  onError(error: Error): void {
    this.#fail(asError(error));
  }

  /** Only CONNECT gets here, which nobody guards; without this its end would be the timer's. */
  onUpgrade(status: number, _headers: unknown, socket: Duplex): void {
    socket.destroy();
    this.#status = status;
    this.#fail(new UpstreamFault('status_invalid', 'upstream switched protocols'));
  }

  #sinkFailed(thrown: unknown): void {
    // What the sink has kept is not to be trusted: no answer.
    this.abort(new UpstreamFault('sink_failed', 'the answer could not be taken', { cause: thrown }));
  }

  #fail(error: Error): void {
    this.#finish(endingOfFailure(this.#abort !== null, this.#status, error));
  }

  #finish(ending: Ending): void {
    if (this.#ending !== null) return;
    this.#ending = ending;
    if (ending.kind === 'answered') failpoint('response_complete');
    this.#clock.stop();
    // A kept-alive connection goes to the next call; and a queued one need not keep the body until its turn.
    if (this.#socket !== null) letGo(this.#socket);
    this.#options.body = null;
    if (this.#dispatched) this.#deliver();
  }

  #deliver(): void {
    this.#owner.ended(this);
    try {
      this.#sink.onEnd(this.#ending as Ending);
    } catch (thrown) {
      // Into undici it must not go: there it would become an unhandled 'error' event.
      this.#owner.sinkFailed(asError(thrown));
    }
  }
}
