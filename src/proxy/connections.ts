import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The data port's connections, upgraded ones too, each with the answers that it still waits for, oldest first. */
export class Connections {
  readonly #open = new Map<Socket, Set<ServerResponse>>();
  readonly #used = new WeakSet<Socket>();
  readonly #sealed = new WeakSet<Socket>();

  constructor(server: Server) {
    server.on('connection', (socket: Socket) => {
      this.#open.set(socket, new Set());
      socket.once('close', () => this.#open.delete(socket));
    });
  }

  /** A request has come on this connection. false: none may come any more, and the connection is cut. */
  expect(res: ServerResponse): boolean {
    // Not `res.socket`: a request sent on the heels of another has none until that one is answered.
    const { socket } = res.req;
    if (this.#sealed.has(socket)) {
      socket.destroy();
      return false;
    }
    this.#used.add(socket);
    const unfinished = this.#open.get(socket);
    if (unfinished === undefined) return true;
    unfinished.add(res);
    res.once('close', () => unfinished.delete(res));
    return true;
  }

  /** This request is the last on its connection: what stands behind it cannot be trusted to be what it seems. */
  seal(res: ServerResponse): void {
    res.shouldKeepAlive = false;
    this.#sealed.add(res.req.socket);
  }

  /** Whether bytes written now could be taken for the answer of a request that runs, or stand in the midst of one. */
  isBusy(socket: Socket): boolean {
    for (const res of this.#open.get(socket) ?? []) if (res.req.complete || res.headersSent) return true;
    return false;
  }

  /** Whether any answer is still to come, or to end, on this connection. */
  isAnswering(socket: Socket): boolean {
    return (this.#open.get(socket)?.size ?? 0) > 0;
  }

  /**
   * The answers under way become the last on their connections, which their clients would keep: a drain would wait for
   * those to time out. So it would for connections on which nothing came yet; Node does not count them as idle.
   */
  endAfterAnswers(): void {
    for (const [socket, unfinished] of this.#open) {
      if (!this.#used.has(socket)) socket.destroy();
      for (const res of unfinished) {
        if (!res.headersSent) res.shouldKeepAlive = false;
        else res.once('finish', () => socket.end());
      }
    }
  }

  /** Ends them all, whatever is on them; Node's own list has lost the upgraded ones. */
  cut(): void {
    for (const socket of this.#open.keys()) socket.destroy();
  }
}
