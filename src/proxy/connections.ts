import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Budget } from './budget.ts';
import { connectionBytes, RequestMemory } from './request-memory.ts';
import { Share } from './share.ts';
import { defaultStallMs } from './untaken.ts';

/** What is known of a connection. */
interface Line {
  /** Memory of the connection itself, and of the heads of its requests. */
  readonly share: Share;
  /** Answers that it still waits for, oldest first. */
  readonly unfinished: ServerResponse[];
  /** A request has come on it. */
  isUsed: boolean;
  /** Why no further request is taken on it; null: requests are taken. */
  sealedBy: 'declined_upgrade' | 'refusal' | 'depth' | null;
  /** Requests that came on a sealed connection: Node keeps them until the last answer is written. */
  readonly ignored: RequestMemory[];
  /** A request that was answered while its body was still coming. */
  lingering: IncomingMessage | null;
  /** When it last had no answer to wait for, or began to linger, and how many bytes had come by then. */
  sinceMs: number;
  sinceBytes: number;
  /** Bytes that the system has taken, and since when no more of them. */
  takenBytes: number;
  takenAtMs: number;
}

/** A client that sends more than this on a sealed connection is cut. */
const maxIgnored = 100;

export interface ConnectionLimits {
  /** Requests that may wait for their answers at once. */
  readonly depth: number;
  /** Milliseconds and bytes of a body that still comes after its answer; then the connection is closed. */
  readonly lingerMs: number;
  readonly lingerBytes: number;
  /** Milliseconds from an answer to the whole head of the next request. */
  readonly quietMs: number;
  /** Milliseconds for a client to take any of an answer that has ended. */
  readonly untakenMs: number;
  /** Milliseconds between looks at these times. */
  readonly watchMs: number;
}

const defaults: ConnectionLimits = {
  // Clients that pipeline at all send a handful.
  depth: 32,
  // Long enough to finish a body of some megabytes, and to read the answer, over a bad line.
  lingerMs: 10_000,
  lingerBytes: 64 * 1_048_576,
  // More than a kept connection may idle (72 s) and then take for a head (60 s). Node forgets both once an empty line came.
  quietMs: 150_000,
  untakenMs: defaultStallMs,
  watchMs: 1_000,
};

/** On the socket itself: a look-up in a map for every request costs more than all that is done with it. */
const line = Symbol('line');

type LineSocket = Socket & { [line]?: Line };

const memory = Symbol('memory');

type Counted = ServerResponse & { [memory]?: RequestMemory };

/**
 * `crowded`: there is no room for it. `ignored`: its connection is sealed, and it is neither run nor answered. `stray`: its socket is
 * none that the server's 'connection' event gave us, so no limit holds on it and it cannot be sealed: a fault of ours.
 */
export type Expected = 'expected' | 'crowded' | 'ignored' | 'stray';

/**
 * The data port's connections, upgraded ones too. Each owns the answers that it still waits for: Node tells only the first of them
 * when the connection closes, for the others have no socket yet. Here all of them get their one 'close'.
 */
export class Connections {
  readonly #open = new Set<LineSocket>();
  readonly #budget: Budget;
  readonly #limits: ConnectionLimits;
  #isEnding = false;

  constructor(server: Server, budget: Budget, limits: Partial<ConnectionLimits> = {}) {
    this.#budget = budget;
    this.#limits = { ...defaults, ...limits };
    server.on('connection', (socket: LineSocket) => this.#add(socket));
    const watch = setInterval(() => this.#closeOverdue(), this.#limits.watchMs).unref();
    server.once('close', () => clearInterval(watch));
  }

  #add(socket: LineSocket): void {
    const share = new Share(this.#budget, socket.remoteAddress);
    // To say why would take more than there is.
    if (!share.tryTake(connectionBytes)) return void socket.destroy();
    const added: Line = {
      share,
      unfinished: [],
      isUsed: false,
      sealedBy: null,
      ignored: [],
      lingering: null,
      sinceMs: performance.now(),
      sinceBytes: 0,
      takenBytes: 0,
      takenAtMs: 0,
    };
    socket[line] = added;
    this.#open.add(socket);
    socket.once('close', () => {
      this.#open.delete(socket);
      // Each takes itself off the list.
      for (const res of added.unfinished.slice()) abandon(res);
      for (const ignored of added.ignored) ignored.letGo();
      share.give(connectionBytes);
    });
  }

  /** A request has come on this connection. */
  expect(res: Counted): Expected {
    const known = lineOf(res);
    if (known === undefined) return 'stray';
    if (known.sealedBy === null && known.unfinished.length >= this.#limits.depth) {
      known.sealedBy = 'depth';
      endAfterLast(known, res.req.socket);
    }
    if (known.sealedBy !== null) {
      ignore(known, res);
      return 'ignored';
    }
    known.isUsed = true;
    known.unfinished.push(res);
    res.once('close', answered);
    const taken = RequestMemory.tryTake(known.share, res.req);
    if (taken === null) return 'crowded';
    res[memory] = taken;
    return 'expected';
  }

  /** An upgrade was declined: this request is the last on its connection. */
  sealAfterDecline(res: ServerResponse): void {
    res.shouldKeepAlive = false;
    const known = lineOf(res);
    if (known !== undefined) known.sealedBy = 'declined_upgrade';
  }

  /** The last answer on this connection is a refusal, which is written or waits for its turn. */
  isRefused(socket: LineSocket): boolean {
    return socket[line]?.sealedBy === 'refusal';
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
    this.#isEnding = true;
    for (const socket of this.#open) {
      const known = socket[line] as Line;
      if (!known.isUsed) socket.destroy();
      endAfterLast(known, socket);
    }
  }

  /** The answers under way are the last: a request that still comes is refused. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** Ends them all, whatever is on them; Node's own list has lost the upgraded ones. */
  cut(): void {
    for (const socket of this.#open) socket.destroy();
  }

  /** Whether nobody reads an answer that has ended, be it one of ours: without this it would keep its connection for ever. */
  #isUntaken(known: Line, socket: LineSocket, nowMs: number): boolean {
    const takenBytes = socket.bytesWritten - socket.writableLength;
    if (!known.unfinished[0]?.writableEnded || takenBytes !== known.takenBytes) {
      known.takenBytes = takenBytes;
      known.takenAtMs = nowMs;
      return false;
    }
    return nowMs - known.takenAtMs >= this.#limits.untakenMs;
  }

  /** Those on which no answer is awaited, and no next request has come in time. */
  #closeOverdue(): void {
    const nowMs = performance.now();
    for (const socket of this.#open) {
      const known = socket[line] as Line;
      if (known.unfinished.length > 0) {
        if (this.#isUntaken(known, socket, nowMs)) socket.destroy();
        continue;
      }
      if (known.lingering?.complete) mark(known, socket, null);
      const ms = nowMs - known.sinceMs;
      const { lingerMs, lingerBytes, quietMs } = this.#limits;
      const isOverdue =
        known.lingering === null
          ? ms >= quietMs
          : ms >= lingerMs || socket.bytesRead - known.sinceBytes > lingerBytes;
      if (isOverdue) socket.destroy();
    }
  }
}

/**
 * Called with each refusal after which the connection closes: what stands behind the refused request may be a part of it, so
 * no further request is taken, not even one that was parsed with it.
 */
export function sealAfterRefusal(socket: LineSocket): void {
  const known = socket[line];
  if (known !== undefined) known.sealedBy = 'refusal';
}

/** Cutting the connection at once would take the refusal away, which Node writes only after it has parsed all that came. */
function ignore({ sealedBy, ignored, share }: Line, { req }: ServerResponse): void {
  const taken =
    sealedBy === 'declined_upgrade' || ignored.length === maxIgnored
      ? null
      : RequestMemory.tryTake(share, req);
  if (taken === null) return void req.socket.destroy();
  ignored.push(taken);
  req.resume();
}

/** What was taken for this request, for whoever works on it when its client has left. */
export function memoryOf(res: Counted): RequestMemory | null {
  return res[memory] ?? null;
}

/** Not by `res.socket`: a request sent on the heels of another has none until that one is answered. */
function lineOf(res: ServerResponse): Line | undefined {
  return (res.req.socket as LineSocket)[line];
}

function answered(this: Counted): void {
  const { req } = this;
  this[memory]?.letGo();
  const known = lineOf(this) as Line;
  known.unfinished.splice(known.unfinished.indexOf(this), 1);
  mark(known, req.socket, req.complete ? null : req);
}

function mark(known: Line, socket: Socket, lingering: IncomingMessage | null): void {
  known.lingering = lingering;
  known.sinceMs = performance.now();
  known.sinceBytes = socket.bytesRead;
}

/** Its connection has closed before its turn came. Of the one whose turn it was Node says so itself. */
function abandon(res: ServerResponse): void {
  if (res.socket !== null) return;
  let isTold = false;
  res.once('close', () => (isTold = true));
  res.destroy();
  // Node 24 says so itself by then.
  setImmediate(() => {
    if (!isTold) res.emit('close');
  });
}

/** The youngest answer becomes the last on its connection: after an older one Node would close it, though the others run too. */
function endAfterLast({ unfinished }: Line, socket: Socket): void {
  const last = unfinished.at(-1);
  if (last === undefined) return;
  if (!last.headersSent) last.shouldKeepAlive = false;
  else last.once('finish', () => socket.end());
}
