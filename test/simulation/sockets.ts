import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** What a client gets to see. */
export interface Seen {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
  /** false: cut before its end. */
  readonly isWhole: boolean;
}

/** What Exchange and readBody use of a request. */
class SimRequest extends EventEmitter {
  readonly httpVersion = '1.1';
  readonly method = 'POST';
  readonly url = '/charges';
  readonly rawHeaders: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly headersDistinct: Readonly<Record<string, readonly string[]>>;
  readonly socket = {
    destroyed: false,
    remoteAddress: '10.0.0.1',
    bytesWritten: 0,
    writableLength: 0,
    destroy: () => {
      this.socket.destroyed = true;
      this.emit('cut');
    },
  };
  complete = false;

  constructor(flat: readonly string[]) {
    super();
    this.rawHeaders = flat;
    const headers: Record<string, string> = {};
    const distinct: Record<string, string[]> = {};
    for (let i = 0; i < flat.length; i += 2) {
      const name = flat[i] as string;
      headers[name] = flat[i + 1] as string;
      distinct[name] = [flat[i + 1] as string];
    }
    this.headers = headers;
    this.headersDistinct = distinct;
  }

  pause(): void {}

  resume(): void {}
}

/** What is used of a response. The client sees each byte at once. */
class SimResponse extends EventEmitter {
  readonly req: SimRequest;
  readonly #onSeen: (seen: Seen) => void;
  #headers = new Map<string, string>();
  #body = '';
  #isOver = false;
  destroyed = false;
  headersSent = false;
  statusCode = 0;
  readonly writableLength = 0;

  constructor(req: SimRequest, onSeen: (seen: Seen) => void) {
    super();
    this.req = req;
    req.once('cut', () => this.destroy());
    this.#onSeen = onSeen;
  }

  writeHead(status: number, flat: readonly string[]): void {
    this.headersSent = true;
    this.statusCode = status;
    for (let i = 0; i < flat.length; i += 2)
      this.#headers.set((flat[i] as string).toLowerCase(), flat[i + 1] as string);
  }

  write(chunk: Buffer | string): boolean {
    this.#body += chunk.toString();
    return true;
  }

  end(chunk?: Buffer | string): void {
    if (chunk !== undefined) this.write(chunk);
    this.#close(true);
  }

  destroy(): void {
    this.#close(false);
  }

  vanish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onSeen({ status: this.statusCode, headers: this.#headers, body: this.#body, isWhole: false });
  }

  #close(isWhole: boolean): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.destroyed = !isWhole;
    this.#onSeen({ status: this.statusCode, headers: this.#headers, body: this.#body, isWhole });
    this.emit('close');
  }
}

/** The two ends that a sidecar has of one call. */
export class Connection {
  readonly #req: SimRequest;
  readonly #res: SimResponse;

  constructor(headers: readonly string[], onSeen: (seen: Seen) => void) {
    this.#req = new SimRequest(headers);
    this.#res = new SimResponse(this.#req, onSeen);
  }

  get req(): IncomingMessage {
    return this.#req as unknown as IncomingMessage;
  }

  get res(): ServerResponse {
    return this.#res as unknown as ServerResponse;
  }

  sendBody(body: string): void {
    this.#req.emit('data', Buffer.from(body));
    this.#req.complete = true;
    this.#req.emit('end');
  }

  /** The sidecar is no more: only the client notices. */
  vanish(): void {
    this.#res.vanish();
  }

  /** The client goes away. */
  leave(): void {
    this.#req.socket.destroyed = true;
    if (!this.#req.complete) this.#req.emit('close');
    this.#res.destroy();
  }
}
