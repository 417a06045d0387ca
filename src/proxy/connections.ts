import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** What is known of a connection. */
interface Line {
  /** Answers that it still waits for, oldest first. */
  readonly unfinished: ServerResponse[];
  /** A request has come on it. */
  isUsed: boolean;
  /** No other may. */
  isSealed: boolean;
}

/** On the socket itself: a look-up in a map for every request costs more than all that is done with it. */
const line = Symbol('line');

type LineSocket = Socket & { [line]?: Line };

/** The data port's connections, upgraded ones too. */
export class Connections {
  readonly #open = new Set<LineSocket>();

  constructor(server: Server) {
    server.on('connection', (socket: LineSocket) => {
      socket[line] = { unfinished: [], isUsed: false, isSealed: false };
      this.#open.add(socket);
      socket.once('close', () => this.#open.delete(socket));
    });
  }

  /** A request has come on this connection. false: none may come any more, and the connection is cut. */
  expect(res: ServerResponse): boolean {
    const known = lineOf(res);
    if (known === undefined) return true;
    if (known.isSealed) {
      res.req.socket.destroy();
      return false;
    }
    known.isUsed = true;
    known.unfinished.push(res);
    res.on('close', answered);
    return true;
  }

  /** This request is the last on its connection: what stands behind it cannot be trusted to be what it seems. */
  seal(res: ServerResponse): void {
    res.shouldKeepAlive = false;
    const known = lineOf(res);
    if (known !== undefined) known.isSealed = true;
  }

  /** Whether bytes written now could be taken for the answer of a request that runs, or stand in the midst of one. */
  isBusy(socket: LineSocket): boolean {
    for (const res of socket[line]?.unfinished ?? []) if (res.req.complete || res.headersSent) return true;
    return false;
  }

  /** Whether any answer is still to come, or to end, on this connection. */
  isAnswering(socket: LineSocket): boolean {
    return (socket[line]?.unfinished.length ?? 0) > 0;
  }

  /**
   * The answers under way become the last on their connections, which their clients would keep: a drain would wait for
   * those to time out. So it would for connections on which nothing came yet; Node does not count them as idle.
   */
  endAfterAnswers(): void {
    for (const socket of this.#open) {
      const { unfinished, isUsed } = socket[line] as Line;
      if (!isUsed) socket.destroy();
      for (const res of unfinished) {
        if (!res.headersSent) res.shouldKeepAlive = false;
        else res.once('finish', () => socket.end());
      }
    }
  }

  /** Ends them all, whatever is on them; Node's own list has lost the upgraded ones. */
  cut(): void {
    for (const socket of this.#open) socket.destroy();
  }
}

/** Not by `res.socket`: a request sent on the heels of another has none until that one is answered. */
function lineOf(res: ServerResponse): Line | undefined {
  return (res.req.socket as LineSocket)[line];
}

function answered(this: ServerResponse): void {
  const { unfinished } = lineOf(this) as Line;
  unfinished.splice(unfinished.indexOf(this), 1);
}
