import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The data port's connections, each with the last answer that was begun on it or is still to come; null: none yet. */
export class Connections {
  readonly #latest = new Map<Socket, ServerResponse | null>();

  constructor(server: Server) {
    server.on('connection', (socket: Socket) => {
      this.#latest.set(socket, null);
      socket.once('close', () => this.#latest.delete(socket));
    });
  }

  /** A request has come on this connection. */
  expect(res: ServerResponse): void {
    // Not `res.socket`: a request sent on the heels of another has none until that one is answered.
    const { socket } = res.req;
    if (!socket.destroyed) this.#latest.set(socket, res);
  }

  /** Whether bytes written now could be taken for the answer of a request that runs, or stand in the midst of one. */
  isBusy(socket: Socket): boolean {
    const res = this.#latest.get(socket) ?? null;
    return res !== null && !res.writableFinished && (res.req.complete || res.headersSent);
  }

  /**
   * The answers under way become the last on their connections, which their clients would keep: a drain would wait for
   * those to time out. So it would for connections on which nothing came yet; Node does not count them as idle.
   */
  endAfterAnswers(): void {
    for (const [socket, res] of this.#latest) {
      if (res === null) socket.destroy();
      else if (!res.headersSent) res.shouldKeepAlive = false;
      else if (!res.writableFinished) res.once('finish', () => socket.end());
    }
  }
}
