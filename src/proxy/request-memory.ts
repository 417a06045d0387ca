import type { IncomingMessage } from 'node:http';
import type { Share } from './share.ts';

/** Bytes that a connection takes: 10,000 while it is idle, 26,000 once most of a head has come. */
export const connectionBytes = 16_384;
/** What Node, Fastify and we keep for a request beside its head and body. */
const requestBytes = 6_144;
/** Of a text beside its characters. */
const textBytes = 32;

/** Memory in the heap that a request takes beside its body: until it is answered, and for as long as it runs. */
export class RequestMemory {
  readonly #share: Share;
  readonly #bytes: number;
  #keepers = 1;

  private constructor(share: Share, bytes: number) {
    this.#share = share;
    this.#bytes = bytes;
  }

  /** null: no room. */
  static tryTake(share: Share, req: IncomingMessage): RequestMemory | null {
    const bytes = bytesOf(req);
    return share.tryTake(bytes) ? new RequestMemory(share, bytes) : null;
  }

  /** It lasts longer than until its answer has gone, or its client. */
  keep(): void {
    this.#keepers += 1;
  }

  letGo(): void {
    this.#keepers -= 1;
    if (this.#keepers === 0) this.#share.give(this.#bytes);
  }
}

function bytesOf({ url = '', rawHeaders }: IncomingMessage): number {
  let bytes = requestBytes + url.length + textBytes * rawHeaders.length;
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}
