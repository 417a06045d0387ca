import { IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { AnswerHeaders } from './pass-through-headers.ts';

/** Dead peers of a silent tunnel are found by TCP itself. */
const tcpKeepAliveMs = 60_000;
/** Milliseconds in which a client takes nothing of what is there for it: its upstream's side waits meanwhile. */
const defaultStallMs = 60_000;

/**
 * Once a server listens for upgrades, Node hands it every request that offers one and stops reading HTTP. Java's client
 * offers h2c with each first request, a POST with its body too: the guard would have seen that body as empty. Only what
 * can become a WebSocket is one here; to the rest we answer in HTTP/1.1, as RFC 9110 section 7.8 allows.
 */
export class DataRequest extends IncomingMessage {
  #offered: unknown;

  /** Set by Node's parser, then asked by its server. */
  get upgrade(): boolean {
    if (!(#offered in this) || this.#offered !== true || this.method !== 'GET') return false;
    const { upgrade, 'content-length': length, 'transfer-encoding': coding } = this.headers;
    return upgrade?.toLowerCase() === 'websocket' && length === undefined && coding === undefined;
  }

  get wasOffered(): boolean {
    return this.#offered === true;
  }

  set upgrade(offered: unknown) {
    // Node's constructor sets it too, before this class has its fields.
    if (#offered in this) this.#offered = offered;
  }
}

/** An upgrade was offered and we go on in HTTP/1.1. */
export function isDeclinedUpgrade(req: IncomingMessage): boolean {
  return req instanceof DataRequest && req.wasOffered && !req.upgrade;
}

interface Asked {
  readonly socket: Socket;
  /** What the client sent behind its request. */
  readonly head: Buffer;
  readonly res: ServerResponse;
}

/** WebSockets are carried as bytes: subprotocols, extensions, pings and refusals are between client and upstream. */
export class Upgrades {
  readonly #asked = new WeakMap<IncomingMessage, Asked>();
  readonly #open = new Set<Socket>();
  readonly #isAnswering: (socket: Socket) => boolean;
  readonly #stallMs: number;
  #closed = false;

  constructor(isAnswering: (socket: Socket) => boolean, stallMs = defaultStallMs) {
    this.#isAnswering = isAnswering;
    this.#stallMs = stallMs;
  }

  /** Such a request takes the same way through hooks and routes as any other. */
  listen(server: Server, route: (req: IncomingMessage, res: ServerResponse) => void): void {
    server.on('upgrade', (req: IncomingMessage, socket: Socket, head: Buffer) => {
      socket.on('error', () => socket.destroy());
      // A server made without DataRequest has lost this request's body by now. Sent on the heels of another request,
      // it would take the socket from under that one's answer.
      if (!(req instanceof DataRequest) || this.#isAnswering(socket)) {
        socket.destroy();
        return;
      }
      const res = new ServerResponse(req);
      // Node reads no HTTP from here on.
      res.shouldKeepAlive = false;
      res.assignSocket(socket);
      res.once('finish', () => socket.destroySoon());
      this.#asked.set(req, { socket, head, res });
      route(req, res);
    });
  }

  isAsked(req: IncomingMessage): boolean {
    return this.#asked.has(req);
  }

  /** The upstream has answered otherwise. What the client still sends is thrown away, but its end must be seen: nobody reads here. */
  decline(req: IncomingMessage): void {
    const socket = this.#asked.get(req)?.socket;
    socket?.on('end', () => socket.destroy()).resume();
  }

  /** The upstream has agreed. */
  join(req: IncomingMessage, upstream: Duplex, answerHead: string): void {
    const asked = this.#asked.get(req);
    if (asked === undefined || this.#closed) {
      upstream.destroy();
      asked?.socket.destroy();
      return;
    }
    const { socket, head, res } = asked;
    res.detachSocket(socket);
    socket.setTimeout(0).setNoDelay(true).setKeepAlive(true, tcpKeepAliveMs);
    socket.write(answerHead, 'latin1');
    if (head.length > 0) socket.unshift(head);
    this.#link(socket, upstream as Socket);
    this.#link(upstream as Socket, socket);
    this.#cutIfStalled(upstream as Socket, socket);
  }

  /** For the end of the server: its sockets would keep it open. */
  close(): void {
    this.#closed = true;
    for (const socket of this.#open) socket.destroySoon();
  }

  /** What is silent may be so for as long as it likes. */
  #cutIfStalled(upstream: Socket, client: Socket): void {
    let timer: NodeJS.Timeout | undefined;
    upstream.on('pause', () => {
      timer ??= setTimeout(() => client.destroy(), this.#stallMs);
    });
    const goOn = () => {
      clearTimeout(timer);
      timer = undefined;
    };
    client.on('drain', goOn);
    client.once('close', goOn);
  }

  #link(from: Socket, to: Socket): void {
    this.#open.add(from);
    from.on('error', () => from.destroy());
    from.once('close', () => {
      this.#open.delete(from);
      // Flushes what is still on its way, a close frame for instance.
      to.destroySoon();
    });
    from.pipe(to);
  }
}

/** The head of the upstream's 101, as it goes to the client. */
export function switchingHead(headers: AnswerHeaders): string {
  let head = 'HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n';
  for (const [name, value] of Object.entries(headers)) {
    for (const one of Array.isArray(value) ? value : [value]) head += `${name}: ${one}\r\n`;
  }
  return `${head}\r\n`;
}
