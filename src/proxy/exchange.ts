import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Policy } from '../core/policy.ts';
import type { RecordId } from '../core/record.ts';
import type { Outcome } from '../core/settle.ts';
import { requestDone } from '../events.ts';
import type { Budget } from './budget.ts';
import type { RequestMemory } from './request-memory.ts';
import { Share } from './share.ts';

interface ExchangeFacts {
  readonly policy: Policy;
  readonly requestId: string;
  readonly budget: Budget;
  /** What was taken for the request itself. */
  readonly memory?: RequestMemory | null;
}

/** A guarded request and what is learnt about it on its way. */
export class Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly policy: Policy;
  readonly requestId: string;
  readonly path: string;
  /** Without the question mark; null when there is none. */
  readonly query: string | null;
  readonly #startedMs = performance.now();
  /** Memory on behalf of its client. */
  readonly share: Share;
  readonly #memory: RequestMemory | null;
  #heldBytes = 0;

  /** Kept only while it may still be sent. */
  body: Buffer | null = null;
  id: RecordId | null = null;
  instance: string | null = null;
  verdict = 'gone';
  outcome: Outcome | 'refused' | null = null;
  error: Error | null = null;
  /** Under way while its answer is already being handed on. Never rejects. */
  settling: Promise<void> | null = null;
  reserveMs: number | null = null;
  forwardMs: number | null = null;
  completeMs: number | null = null;

  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    { policy, requestId, budget, memory = null }: ExchangeFacts,
  ) {
    this.req = req;
    this.res = res;
    this.policy = policy;
    this.requestId = requestId;
    this.share = new Share(budget, req.socket.remoteAddress);
    this.#memory = memory;
    memory?.keep();
    const url = req.url ?? '/';
    const mark = url.indexOf('?');
    this.path = mark === -1 ? url : url.slice(0, mark);
    this.query = mark === -1 ? null : url.slice(mark + 1);
  }

  get method(): string {
    return this.req.method ?? 'GET';
  }

  get clientGone(): boolean {
    return this.res.destroyed || this.req.socket.destroyed;
  }

  /** Resolves when the client has gone, or has its answer. */
  get left(): Promise<void> {
    return new Promise((resolve) => {
      if (this.clientGone) resolve();
      else this.res.once('close', resolve);
    });
  }

  /** Memory for its body, as it arrives. */
  tryHold(bytes: number): boolean {
    if (!this.share.tryTake(bytes)) return false;
    this.#heldBytes += bytes;
    return true;
  }

  /** Its body will not be sent. */
  letGo(): void {
    this.body = null;
    if (this.#heldBytes > 0) this.share.give(this.#heldBytes);
    this.#heldBytes = 0;
  }

  /** Publishes the one event of this request. */
  done(): void {
    this.letGo();
    this.#memory?.letGo();
    // Spelled out: a spread costs more than all the rest.
    requestDone.publish({
      requestId: this.requestId,
      method: this.method,
      route: this.policy.route,
      status: this.res.headersSent ? this.res.statusCode : 0,
      verdict: this.verdict,
      outcome: this.outcome,
      id: this.id,
      instance: this.instance,
      error: this.error,
      totalMs: performance.now() - this.#startedMs,
      reserveMs: this.reserveMs,
      forwardMs: this.forwardMs,
      completeMs: this.completeMs,
    });
  }
}
