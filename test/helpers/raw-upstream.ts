import { once } from 'node:events';
import net, { type AddressInfo, type Socket } from 'node:net';
import tls, { type TlsOptions } from 'node:tls';

/** One request as it came over the wire. */
export interface RawRequest {
  readonly head: string;
  readonly body: Buffer;
}

export interface RawConnection {
  /** Under TLS the TLSSocket. */
  readonly socket: Socket;
  /** The connection itself, also below TLS. */
  readonly tcp: Socket;
  /** 0 for the first connection of this upstream. */
  readonly index: number;
  bytes: number;
  readonly requests: RawRequest[];
}

/** What the upstream does. Called synchronously, so that "at once" is before the client's own event. */
export interface RawScript {
  connected?(connection: RawConnection): void;
  /** First bytes of a request have come, perhaps not all of them. */
  firstBytes?(connection: RawConnection, nth: number): void;
  /** A whole request has come; `nth` counts on this connection, from 0. */
  requested?(connection: RawConnection, nth: number, request: RawRequest): void;
}

/**
 * An upstream made of sockets, for what upstream.ts cannot do since it is a real HTTP server: answer with bytes that are no HTTP, break
 * off at a certain byte or in the TLS handshake, act before a request has come whole, and know each byte that reached it, which alone
 * proves that nothing was sent.
 */
export class RawUpstream {
  readonly connections: RawConnection[] = [];
  readonly port: number;
  readonly #server: net.Server;

  private constructor(server: net.Server, script: RawScript, event: string) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
    const byPort = new Map<number | undefined, Socket>();
    server.on('connection', (tcp) => byPort.set(tcp.remotePort, tcp));
    server.on(event, (socket: Socket) =>
      this.#accept(socket, byPort.get(socket.remotePort) ?? socket, script),
    );
  }

  static async listen(script: RawScript, secure?: TlsOptions): Promise<RawUpstream> {
    const server = secure === undefined ? net.createServer() : tls.createServer(secure);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new RawUpstream(server, script, secure === undefined ? 'connection' : 'secureConnection');
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get bytes(): number {
    return this.connections.reduce((sum, connection) => sum + connection.bytes, 0);
  }

  /** Request lines in the order of connections, then of arrival. */
  get lines(): string[] {
    return this.connections.flatMap((c) =>
      c.requests.map((request) => request.head.split('\r\n', 1)[0] ?? ''),
    );
  }

  async close(): Promise<void> {
    for (const { socket } of this.connections) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #accept(socket: Socket, tcp: Socket, script: RawScript): void {
    const connection: RawConnection = {
      socket,
      tcp,
      index: this.connections.length,
      bytes: 0,
      requests: [],
    };
    this.connections.push(connection);
    socket.on('error', () => {}); // The client's resets are part of the game.
    let pending: Buffer = Buffer.alloc(0);
    socket.on('data', (chunk) => {
      connection.bytes += chunk.length;
      if (pending.length === 0) script.firstBytes?.(connection, connection.requests.length);
      pending = Buffer.concat([pending, chunk]);
      for (let cut = cutRequest(pending); cut !== null; cut = cutRequest(pending)) {
        pending = cut.rest;
        connection.requests.push(cut.request);
        script.requested?.(connection, connection.requests.length - 1, cut.request);
      }
    });
    script.connected?.(connection);
  }
}

function cutRequest(bytes: Buffer): { request: RawRequest; rest: Buffer } | null {
  const end = bytes.indexOf('\r\n\r\n');
  if (end === -1) return null;
  const head = bytes.toString('latin1', 0, end);
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
  const from = end + 4;
  if (bytes.length < from + length) return null;
  return {
    request: { head, body: bytes.subarray(from, from + length) },
    rest: bytes.subarray(from + length),
  };
}

/** Ready-made scripts. `bytes` is sent as latin1. */
export const scripts = {
  resetAtOnce: (): RawScript => ({ connected: ({ socket }) => void socket.resetAndDestroy() }),
  closeAtOnce: (): RawScript => ({ connected: ({ socket }) => void socket.end() }),
  readThenReset: (): RawScript => ({ requested: ({ socket }) => void socket.resetAndDestroy() }),
  readThenClose: (): RawScript => ({ requested: ({ socket }) => void socket.end() }),
  silent: (): RawScript => ({}),
  answer: (bytes: string): RawScript => ({ requested: ({ socket }) => void socket.write(bytes, 'latin1') }),
  answerThenClose: (bytes: string): RawScript => ({
    requested: ({ socket }) => void socket.end(bytes, 'latin1'),
  }),
  answerThenReset: (bytes: string): RawScript => ({
    requested: ({ socket }) => void socket.write(bytes, 'latin1', () => socket.resetAndDestroy()),
  }),
  /** Answers when the first bytes of the request are there, and reads the rest all the same. */
  answerEarly: (bytes: string): RawScript => ({
    firstBytes: ({ socket }) => void socket.write(bytes, 'latin1'),
  }),
  /** One byte a turn of the event loop. */
  drip: (bytes: string): RawScript => ({
    requested: ({ socket }) => {
      let sent = 0;
      const next = (): void => {
        if (sent < bytes.length && !socket.destroyed)
          socket.write(bytes.charAt(sent++), 'latin1', () => setImmediate(next));
      };
      next();
    },
  }),
  /** The first request is answered and the connection kept; at the next one's first bytes it is reset. */
  resetWhenReused: (bytes: string): RawScript => ({
    firstBytes: ({ socket }, nth) => void (nth > 0 && socket.resetAndDestroy()),
    requested: ({ socket }) => void socket.write(bytes, 'latin1'),
  }),
} as const;
