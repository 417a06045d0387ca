import { connect, type Socket } from 'node:net';
import { answerBody } from './exchange.ts';

export interface Answer {
  readonly head: string;
  readonly ms: number;
}

interface Listener {
  answered(answer: Answer): void;
  failed(error: Error): void;
}

/** A client: a bare socket with one request at a time, so that clients are never what is waited for. */
export class Connection {
  readonly #listener: Listener;
  #socket: Socket | null = null;
  #sentMs = 0;
  #got = '';

  constructor(listener: Listener) {
    this.#listener = listener;
  }

  async open(port: number): Promise<void> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.#socket = socket;
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    socket.on('data', (chunk) => this.#read(chunk.toString('latin1')));
    socket.on('error', (error) => this.#listener.failed(error));
    socket.on('close', () => this.#listener.failed(new Error('a contender closed its connection')));
  }

  send(text: string): void {
    this.#sentMs = performance.now();
    this.#socket?.write(text, 'latin1');
  }

  close(): void {
    this.#socket?.destroy();
  }

  #read(chunk: string): void {
    this.#got += chunk;
    const got = this.#got;
    const headEnd = got.indexOf('\r\n\r\n');
    if (headEnd === -1) return;
    const head = got.slice(0, headEnd + 2);
    const length = contentLength.exec(head);
    if (length === null) return this.#listener.failed(new Error(`an answer without Content-Length:\n${got}`));
    const whole = headEnd + 4 + Number(length[1]);
    if (got.length < whole) return;
    if (got.length > whole || got.slice(headEnd + 4) !== answerBody) {
      return this.#listener.failed(new Error(`this is not what the upstream answers:\n${got}`));
    }
    this.#got = '';
    this.#listener.answered({ head, ms: performance.now() - this.#sentMs });
  }
}

const contentLength = /\r\ncontent-length: *(\d+)\r\n/i;
