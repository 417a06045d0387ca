/** The clients, in a process of their own: bare sockets, so that they are never what is waited for. */
import { randomUUID } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { path, requestBody } from './exchange.ts';

export interface Order {
  readonly port: number;
  readonly requests: number;
  readonly connections: number;
  /** Taken in turn; null: each request has one of its own. */
  readonly keys: readonly string[] | null;
  /** Must stand in the head of every answer. */
  readonly expect: string;
}

export interface Done {
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Without an answer for so long a contender counts as broken. */
const silenceMs = 20_000;

const head = [
  `POST ${path} HTTP/1.1`,
  'Host: 127.0.0.1',
  'User-Agent: bench/1',
  'Accept: application/json',
  'Authorization: Bearer sk_test_4eC39HqLyjWDarjtT1zdp7dc',
  'Content-Type: application/json',
  `Content-Length: ${Buffer.byteLength(requestBody)}`,
  'Idempotency-Key: ',
].join('\r\n');
const tail = `\r\n\r\n${requestBody}`;

class Run {
  readonly #order: Order;
  readonly #sockets: Socket[] = [];
  readonly #latencies: Float64Array;
  readonly #end: (error: Error | null) => void;
  readonly ended: Promise<Error | null>;
  #sent = 0;
  #answered = 0;

  constructor(order: Order) {
    this.#order = order;
    this.#latencies = new Float64Array(order.requests);
    let end: (error: Error | null) => void = () => {};
    this.ended = new Promise((resolve) => {
      end = resolve;
    });
    this.#end = end;
  }

  async whole(): Promise<Done> {
    const { connections, requests } = this.#order;
    await Promise.all(Array.from({ length: Math.min(connections, requests) }, () => this.#open()));
    const startedMs = performance.now();
    for (const socket of this.#sockets) this.#drive(socket);
    let before = -1;
    const watch = setInterval(() => {
      if (before === this.#answered) this.#end(new Error(`no answer for ${silenceMs / 1000} s`));
      before = this.#answered;
    }, silenceMs);
    const error = await this.ended;
    const seconds = (performance.now() - startedMs) / 1000;
    clearInterval(watch);
    for (const socket of this.#sockets) socket.destroy();
    if (error !== null) throw error;
    const sorted = this.#latencies.sort();
    const at = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))] as number;
    return { seconds, p50Ms: at(0.5), p99Ms: at(0.99) };
  }

  async #open(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const socket = connect({ port: this.#order.port, host: '127.0.0.1', noDelay: true }, resolve);
      socket.once('error', reject);
      this.#sockets.push(socket);
    });
  }

  /** One request after the other on this connection, until all are sent. */
  #drive(socket: Socket): void {
    const { requests, keys, expect } = this.#order;
    let sentMs = 0;
    let got = '';
    const send = () => {
      if (this.#sent === requests) return;
      const key = keys === null ? randomUUID() : (keys[this.#sent % keys.length] as string);
      this.#sent += 1;
      sentMs = performance.now();
      socket.write(head + key + tail, 'latin1');
    };
    socket.on('data', (chunk) => {
      got += chunk.toString('latin1');
      const length = lengthOf(got);
      if (length === -1 || got.length < length) return;
      if (got.length > length || !got.includes(expect)) {
        return this.#end(new Error(`expected "${expect}", got:\n${got}`));
      }
      got = '';
      this.#latencies[this.#answered++] = performance.now() - sentMs;
      if (this.#answered === requests) return this.#end(null);
      send();
    });
    socket.on('error', (error) => this.#end(error));
    socket.on('close', () => this.#end(new Error('a contender closed its connection')));
    send();
  }
}

const contentLength = /\r\ncontent-length: *(\d+)\r\n/i;

/** Of the whole answer; -1: its head is not here yet. */
function lengthOf(got: string): number {
  const headEnd = got.indexOf('\r\n\r\n');
  if (headEnd === -1) return -1;
  const length = contentLength.exec(got.slice(0, headEnd + 2));
  if (length === null) throw new Error(`an answer without Content-Length:\n${got}`);
  return headEnd + 4 + Number(length[1]);
}

process.on('message', async (order: Order) => {
  try {
    process.send?.({ done: await new Run(order).whole() });
  } catch (error) {
    process.send?.({ failed: (error as Error).message });
  }
});
process.on('disconnect', () => process.exit());
