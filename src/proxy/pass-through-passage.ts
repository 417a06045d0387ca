import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { FastifyReply } from 'fastify';
import type { Dispatcher } from 'undici';
import type { UpstreamTarget } from '../core/policy.ts';
import { asError } from '../errors.ts';
import { isBodiless, isCloseFramed } from '../upstream/answer-head.ts';
import { type HoldableSocket, hold, letGo, socketBeingRead } from '../upstream/hold.ts';
import { endedInOrder } from '../upstream/orderly-end.ts';
import type { Turn } from '../upstream/turns.ts';
import { cutAnswer } from './cut-answer.ts';
import type { PaceLimit } from './pace.ts';
import { RequestBody } from './pass-through-body.ts';
import {
  type AnswerHeaders,
  headersForClient,
  headersForUpstream,
  type UpstreamHeaderFacts,
} from './pass-through-headers.ts';
import { Onward } from './pass-through-onward.ts';
import type { PassThroughDispatch, PassThroughPools } from './pass-through-pools.ts';
import { PassThroughFault } from './pass-through-problem.ts';
import { switchingHead, type Upgrades } from './pass-through-upgrade.ts';
import type { Share } from './share.ts';

/** Node's longest timer; above it setTimeout fires at once. */
const maxTimerMs = 2 ** 31 - 1;

/** What reply-from takes for undici's answer: it copies the headers, and gives the body back to be sent. */
interface Answer {
  readonly statusCode: number;
  readonly headers: AnswerHeaders;
  readonly body: Passage;
}

export type Respond = (error: Error | null, answer?: Answer) => void;

export interface PassageFacts extends UpstreamHeaderFacts {
  readonly reply: FastifyReply;
  /** Memory on behalf of its client. */
  readonly share: Share;
  readonly stallMs?: number | undefined;
  readonly pace?: PaceLimit | undefined;
}

/** One request on its way through: undici's handler. It is sent at most once, and ends when its client leaves. */
export class Passage implements Dispatcher.DispatchHandler, Turn {
  place = -1;
  queuedAtMs = 0;
  readonly #facts: PassageFacts;
  readonly #upgrades: Upgrades;
  readonly #req: IncomingMessage;
  #respond: Respond | null = null;
  #timer: NodeJS.Timeout | undefined;
  #requestBody: RequestBody | null = null;
  #pools: PassThroughPools | null = null;
  #controller: Dispatcher.DispatchController | null = null;
  #socket: HoldableSocket | null = null;
  #status = 0;
  #isCloseFramed = false;
  #headers: AnswerHeaders = {};
  /** What came before the answer was on its way. */
  #chunks: Buffer[] = [];
  /** Once the answer is on its way. */
  #res: ServerResponse | null = null;
  #onward: Onward | null = null;
  /** The upstream waits until the client has taken what there is. */
  #isHeld = false;
  #ended = false;

  constructor(facts: PassageFacts, upgrades: Upgrades) {
    this.#facts = facts;
    this.#upgrades = upgrades;
    this.#req = facts.reply.request.raw;
  }

  send(pools: PassThroughPools, respond: Respond): void {
    const { reply } = this.#facts;
    const req = this.#req;
    this.#respond = respond;
    reply.raw.once('close', () => this.destroy());
    if (!hasBody(req)) return this.#wait(pools);
    const listener = {
      ready: () => this.#wait(pools),
      refuse: (code: 'overloaded' | 'body_incomplete') => this.#refuse(new PassThroughFault(code)),
    };
    this.#requestBody = new RequestBody(req, this.#facts.share, listener, this.#facts.pace);
  }

  #wait(pools: PassThroughPools): void {
    if (this.#ended) return;
    const { target } = this.#facts;
    // Until it is on the wire; then undici's own takes over, which an upload that makes progress puts off.
    this.#timer = setTimeout(expire, timeoutOf(target), this);
    this.#pools = pools;
    if (!pools.add(target, this)) this.refuse();
  }

  get address(): string {
    return this.#facts.share.address;
  }

  refuse(): void {
    this.#end();
    this.#refuse(new PassThroughFault('overloaded'));
  }

  start(): void {
    try {
      this.#dispatch();
    } catch (thrown) {
      this.#fail(asError(thrown));
    }
  }

  #dispatch(): void {
    const { target } = this.#facts;
    const req = this.#req;
    const options: PassThroughDispatch = {
      method: req.method ?? 'GET',
      path: req.url ?? '/',
      headers: headersForUpstream(this.#facts, req),
      body: this.#requestBody,
      headersTimeout: timeoutOf(target),
      // Event streams may be silent for as long as they like.
      bodyTimeout: 0,
    };
    if (this.#upgrades.isAsked(req)) options.upgrade = 'websocket';
    this.#pools?.dispatch(target, options, this);
  }

  /** Sends the answer, or what there is of it so far. */
  sendTo(res: ServerResponse): void {
    if (res.destroyed) return this.destroy();
    this.#upgrades.decline(this.#req);
    const chunks = this.#chunks;
    this.#chunks = [];
    if (this.#ended) {
      const body = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
      if (!this.#isHeadOnly()) this.#headers['content-length'] ??= String(body.length);
      res.writeHead(this.#status, this.#headers).end(body);
      // Most are with the system by now.
      if (res.writableLength > 0) this.#onwardOf(res).end();
      return;
    }
    this.#res = res;
    res.writeHead(this.#status, this.#headers);
    // An event source is open before its first event.
    if (chunks.length === 0) res.flushHeaders();
    // A write may still meet a socket that has just closed.
    res.on('error', () => this.destroy());
    this.#onward = this.#onwardOf(res);
    for (const chunk of chunks) this.#pass(this.#onward, chunk);
  }

  /** The client has left, or has its answer. */
  destroy(): void {
    if (this.#ended) return;
    this.#end();
    this.#respond = null;
    this.#controller?.abort(new Error('the client has left'));
  }

  get slowSinceMs(): number | null {
    if (this.#isHeld) return this.#onward?.tookAtMs ?? null;
    return this.#requestBody?.slowSinceMs ?? null;
  }

  makeWay(): boolean {
    this.destroy();
    this.#req.socket.destroy();
    return true;
  }

  timeOut(): void {
    this.#fail(new Error('not sent in time'));
  }

  /** Throwing sends nothing and keeps the connection, which `controller.abort()` would not. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#ended) throw new Error('ended while it was queued');
    if (this.#controller !== null) throw new Error('undici tried to send the request again');
    clearTimeout(this.#timer);
    this.#controller = controller;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: object): void {
    // 102, 103: the answer is still to come.
    if (this.#ended || (status > 101 && status < 200)) return;
    if (status < 200 || status > 599) {
      this.#fail(new Error(`upstream answered status ${status}`));
      controller.abort(new Error('status invalid'));
      return;
    }
    this.#status = status;
    const { memos, requestId } = this.#facts;
    this.#headers = headersForClient(memos, headers as IncomingMessage['headers'], requestId);
    // As of guarded answers: of what has no body no length is passed on.
    if (isBodiless(status)) delete this.#headers['content-length'];
    const { 'content-length': length, 'transfer-encoding': coding } = headers as IncomingMessage['headers'];
    const method = this.#req.method ?? 'GET';
    this.#isCloseFramed = isCloseFramed(method, status, length !== undefined, coding ?? null);
    this.#socket = socketBeingRead();
    // Now: undici fails a 304 that says how long its body would be.
    if (this.#isHeadOnly()) this.#end();
    // Later than the rest of what undici has in hand: most answers are then complete, and leave in one piece.
    queueMicrotask(() => this.#answer());
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#ended) return;
    if (this.#onward === null) this.#chunks.push(chunk);
    else this.#pass(this.#onward, chunk);
  }

  onResponseEnd(): void {
    if (this.#ended) return;
    if (this.#isCloseFramed && !endedInOrder(this.#socket))
      return this.#fail(this.#socket?.errored ?? new Error('reset before the end of the answer'));
    this.#end();
    this.#onward?.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.#fail(error);
  }

  onRequestUpgrade(
    _controller: Dispatcher.DispatchController,
    _status: number,
    headers: Record<string, string | string[] | undefined>,
    socket: Duplex,
  ): void {
    if (this.#ended) {
      socket.destroy();
      return;
    }
    this.#end();
    const { memos, reply, requestId } = this.#facts;
    reply.hijack();
    this.#upgrades.join(this.#req, socket, switchingHead(headersForClient(memos, headers, requestId)));
  }

  #answer(): void {
    const respond = this.#respond;
    this.#respond = null;
    respond?.(null, { statusCode: this.#status, headers: this.#headers, body: this });
  }

  #fail(error: Error): void {
    if (this.#ended) return;
    this.#end();
    // Nothing else can tell the client that its answer is not whole.
    if (this.#res !== null) cutAnswer(this.#res);
    this.#refuse(faultOf(this.#controller !== null, error));
  }

  #refuse(fault: PassThroughFault): void {
    const respond = this.#respond;
    this.#respond = null;
    respond?.(fault);
  }

  #end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    if (this.#socket !== null) letGo(this.#socket);
    this.#pools?.remove(this.#facts.target, this);
    this.#requestBody?.destroy();
  }

  #onwardOf(res: ServerResponse): Onward {
    const { share, stallMs } = this.#facts;
    return new Onward(res, share, stallMs, () => this.#resume());
  }

  #pass(onward: Onward, chunk: Buffer): void {
    // Not `controller.pause()`: see upstream/hold.ts.
    if (onward.write(chunk) || this.#socket === null) return;
    hold(this.#socket);
    this.#isHeld = true;
  }

  #resume(): void {
    if (this.#socket === null || this.#ended) return;
    letGo(this.#socket);
    this.#isHeld = false;
  }

  #isHeadOnly(): boolean {
    return this.#req.method === 'HEAD' || isBodiless(this.#status);
  }
}

function expire(passage: Passage): void {
  passage.timeOut();
}

function timeoutOf({ timeoutMs }: UpstreamTarget): number {
  return Math.min(timeoutMs, maxTimerMs);
}

function hasBody(req: IncomingMessage): boolean {
  const { 'content-length': length, 'transfer-encoding': coding } = req.headers;
  return coding !== undefined || (length !== undefined && length !== '0');
}

/** As for guarded requests, "sent or not" hangs on request-start alone. */
function faultOf(started: boolean, cause: Error): PassThroughFault {
  if (!started) return new PassThroughFault('upstream_unreachable', { cause });
  const timedOut = 'code' in cause && cause.code === 'UND_ERR_HEADERS_TIMEOUT';
  return new PassThroughFault(timedOut ? 'upstream_timeout' : 'upstream_failed', { cause });
}
