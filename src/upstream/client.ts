import { type Client, Pool } from 'undici';
import type { UpstreamTarget } from '../core/policy.ts';
import type { Ending } from '../core/settle.ts';
import { Call, type CallOptions, type CallOwner } from './call.ts';
import { certificateName, connectorFor, type TlsOptions } from './connector.ts';
import { UpstreamFault } from './failure.ts';
import { SteadyClient } from './steady-client.ts';
import { Turns } from './turns.ts';

export interface UpstreamRequest {
  readonly method: string;
  /** Raw path and query, byte for byte. */
  readonly path: string;
  /** Flat list; hop-by-hop fields, Expect and Upgrade must be gone: undici refuses them, provably unsent. */
  readonly headers: readonly string[];
  readonly body: Buffer;
  /** Of the client: those of one address wait behind each other. */
  readonly address: string;
  /** From queueing to the last byte, without the time in which the sink reads no more. What is not sent in half of it never is. */
  readonly timeoutMs: number;
  /** The last check, in undici's request-start, maybe before `dispatch` returns: false or a throw sends nothing, provably. */
  readonly mayStart: () => boolean;
}

export interface AnswerSink {
  /** Head of the final answer, status 200 to 599; at most once, before any data. */
  onHead(head: { readonly status: number; readonly headers: string[] }): void;
  /** The chunk may be kept. false: read no more until `resume()`; up to 128 kB already in hand still come. */
  onData(chunk: Buffer): boolean;
  /** Other requests wait for this connection. false: it is not the client of this answer that holds it up. */
  makeWay(): boolean;
  /** Exactly once, always, and never before `dispatch` has returned. */
  onEnd(ending: Ending): void;
}

export interface UpstreamCall {
  resume(): void;
  /** Stop waiting, for instance at drain's end: ends as broken, or as not_started while still queued. */
  abort(reason: Error): void;
}

export interface UpstreamClientOptions extends TlsOptions {
  /** An error thrown by a sink's onEnd, which nobody else can hear. */
  readonly onSinkError?: (error: Error) => void;
}

/** Longer than a connection ever takes where it will succeed. */
const maxConnectMs = 10_000;

/**
 * Idle connections end on our side first: a request that meets the upstream's close is started and unknown. Many servers
 * close after 5 s (Node's default) without saying so; who says so in Keep-Alive is believed, less 2 s for the way.
 */
const keepAlive = { keepAliveTimeout: 4_000, keepAliveTimeoutThreshold: 2_000, keepAliveMaxTimeout: 30_000 };

const maxAnswerHeadBytes = 64 * 1024;

/** All guarded requests to one upstream. No interceptor, no retry, no redirect, no h2 (it re-sends after GOAWAY). */
export class UpstreamClient implements CallOwner {
  readonly #pool: Pool;
  readonly #servername: string | null;
  readonly #onSinkError: (error: Error) => void;
  readonly #turns: Turns<Call>;
  #closing: Promise<void> | null = null;
  #onIdle: (() => void) | null = null;

  constructor(target: UpstreamTarget, options: UpstreamClientOptions = {}) {
    const origin = new URL(target.origin);
    // Constant, or undici would derive it from each request's Host and reconnect whenever that changes.
    this.#servername = origin.protocol === 'https:' ? (certificateName(origin) ?? origin.hostname) : null;
    this.#onSinkError = options.onSinkError ?? ((error) => process.emitWarning(error));
    this.#turns = new Turns(target.connections);
    this.#pool = new Pool(origin, {
      connect: connectorFor(origin, Math.min(target.timeoutMs, maxConnectMs), options),
      factory: (url, settings) => new SteadyClient(url, settings as Client.Options),
      connections: target.connections,
      pipelining: 1,
      allowH2: false,
      // A clock of ours rules, from the queue to the last byte (call-clock.ts).
      headersTimeout: 0,
      bodyTimeout: 0,
      maxHeaderSize: maxAnswerHeadBytes,
      maxResponseSize: -1,
      ...keepAlive,
    });
  }

  dispatch(request: UpstreamRequest, sink: AnswerSink): UpstreamCall {
    const options: CallOptions = {
      method: request.method,
      path: request.path,
      headers: request.headers as string[],
      body: request.body,
    };
    if (this.#servername !== null) options.servername = this.#servername;
    const call = new Call(this, request, sink, options);
    if (this.#closing !== null)
      call.fail(new UpstreamFault('client_closed', 'the upstream client is closed'));
    else call.dispatch(this.#wait);
    return call;
  }

  readonly #wait = (call: Call): boolean => this.#turns.add(call);

  send(call: Call, options: CallOptions): void {
    this.#pool.dispatch(options, call);
  }

  /** Takes no more calls and waits for those under way; each has its timer, so this ends. */
  close(): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      if (this.#turns.size === 0) resolve();
      else this.#onIdle = resolve;
    });
    return this.#closing.then(() => this.#pool.destroy());
  }

  /** Ends every call now. Not left to the pool: it forgets connections that once failed, and the calls queued on them. */
  async destroy(): Promise<void> {
    this.#closing ??= Promise.resolve();
    const reason = new UpstreamFault('client_closed', 'the upstream client was destroyed');
    this.#turns.forEach((call) => call.abort(reason));
    await this.#pool.destroy();
  }

  ended(call: Call): void {
    this.#turns.remove(call);
    if (this.#turns.size === 0) this.#onIdle?.();
  }

  sinkFailed(error: Error): void {
    this.#onSinkError(error);
  }
}
