import type { IncomingMessage } from 'node:http';
import { Pace, type PaceLimit } from './pace.ts';
import { Pieces } from './pieces.ts';

export type BodyResult =
  | { readonly kind: 'body'; readonly body: Buffer }
  | { readonly kind: 'too_large' }
  /** No room in memory. */
  | { readonly kind: 'overloaded' }
  | { readonly kind: 'incomplete' };

interface Memory {
  tryHold(bytes: number): boolean;
}

/** Milliseconds from the head to the body's last byte, however fast it comes. Only guarded requests have this limit: others are streamed. */
const bodyTimeoutMs = 60_000;

/** The whole body or nothing: a reservation is only made once every byte is there. */
export function readBody(
  req: IncomingMessage,
  limitBytes: number,
  memory: Memory,
  pace?: PaceLimit,
): Promise<BodyResult> {
  if (Number(req.headers['content-length'] ?? 0) > limitBytes) return Promise.resolve({ kind: 'too_large' });
  // Also without a byte to come: its answer will need room.
  if (!memory.tryHold(0)) return Promise.resolve({ kind: 'overloaded' });
  return new Promise((resolve) => new Reading(req, limitBytes, memory, { resolve, pace }));
}

/**
 * Listens as long as the request lives, for a fault of the connection must find a listener; but once the body is read nothing of
 * it hangs on here, not even by way of the promise that was resolved with it.
 */
class Reading {
  readonly #req: IncomingMessage;
  readonly #limitBytes: number;
  readonly #memory: Memory;
  readonly #pieces = new Pieces();
  readonly #timer: NodeJS.Timeout;
  readonly #pace: Pace;
  #resolve: ((result: BodyResult) => void) | null;

  constructor(
    req: IncomingMessage,
    limitBytes: number,
    memory: Memory,
    { resolve, pace }: { resolve: (result: BodyResult) => void; pace: PaceLimit | undefined },
  ) {
    this.#req = req;
    this.#limitBytes = limitBytes;
    this.#memory = memory;
    this.#resolve = resolve;
    const onCut = (): void => this.#finish({ kind: 'incomplete' });
    this.#timer = setTimeout(onCut, bodyTimeoutMs);
    this.#pace = new Pace(onCut, pace);
    this.#pace.start();
    req.on('data', (chunk: Buffer) => this.#add(chunk));
    req.on('end', () => this.#end());
    req.on('close', onCut);
    req.on('error', onCut);
  }

  #add(chunk: Buffer): void {
    // Of one that was refused the rest is read and thrown away.
    if (this.#resolve === null) return;
    this.#pace.came(chunk.length);
    if (this.#pieces.bytes + chunk.length > this.#limitBytes) this.#stop('too_large');
    else if (this.#memory.tryHold(chunk.length)) this.#pieces.add(chunk);
    else this.#stop('overloaded');
  }

  #end(): void {
    if (this.#resolve !== null) this.#finish({ kind: 'body', body: this.#pieces.whole() });
  }

  #stop(kind: 'too_large' | 'overloaded'): void {
    this.#req.pause();
    this.#finish({ kind });
  }

  #finish(result: BodyResult): void {
    const resolve = this.#resolve;
    if (resolve === null) return;
    this.#resolve = null;
    clearTimeout(this.#timer);
    this.#pace.stop();
    this.#pieces.clear();
    resolve(result);
  }
}
