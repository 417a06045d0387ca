import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type Told, wholeAnswerIn } from './callers.ts';

/** One kept-alive connection to a replica: a socket and a string, so that the load is never what is waited for. */
export class Line {
  readonly replica: number;
  readonly #socket: Socket;
  #got = '';
  #answered: ((told: Told) => void) | null = null;

  private constructor(replica: number, socket: Socket) {
    this.replica = replica;
    this.#socket = socket;
    socket.on('data', (chunk) => this.#read(chunk));
  }

  /** `broken`: nothing fails on purpose here, so that a connection that ends is the end of all. */
  static async open(replica: number, url: string, broken: (error: Error) => void): Promise<Line> {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    await once(socket, 'connect');
    socket.on('error', broken);
    socket.on('close', () => broken(new Error(`replica ${replica} closed a connection`)));
    return new Line(replica, socket);
  }

  /** One request at a time. */
  send(request: string, answered: (told: Told) => void): void {
    this.#answered = answered;
    this.#socket.write(request, 'latin1');
  }

  #read(chunk: Buffer): void {
    this.#got += chunk.toString('latin1');
    const told = wholeAnswerIn(this.#got);
    if (told === null) return;
    this.#got = '';
    const answered = this.#answered;
    this.#answered = null;
    answered?.(told);
  }
}
