import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Teardown } from './postgres.ts';
import {
  type Armed,
  type Direction,
  Lane,
  type Match,
  type MessageMatch,
  type Orders,
  reset,
} from './tcp-lane.ts';

/**
 * `cut-before`: both sides are reset, and the chunk with the match is not delivered. Of a match that came in several
 * chunks the earlier ones were; the receiver never has the whole.
 * `cut-after`: delivered whole, then the connection ends: in order (FIN) for the receiver, so that it surely reads
 * the bytes, by reset for the sender, who gets no answer.
 * `hold`: this chunk and all after it in this direction wait for `release()` or `cut()`.
 */
export type Action = 'cut-before' | 'cut-after' | 'hold';

export interface Trap {
  /** When the match was seen and acted upon. */
  readonly fired: Promise<void>;
  release(): void;
  cut(): void;
  /** It has not fired, and shall not any more. */
  disarm(): void;
}

export interface TcpProxy {
  readonly port: number;
  /** The same URL, through this proxy. */
  through(url: string): string;
  /** Connections ever made, open now, and bytes delivered. */
  counts(): { connections: number; open: number; toServer: number; toClient: number };
  cutAll(): void;
  /** A black hole: connections stand, bytes and closes stop flowing. */
  pause(direction?: Direction): void;
  resume(direction?: Direction): void;
  /** New connections are reset at once. */
  refuse(on: boolean): void;
  /** So many more bytes in this direction, then all of it waits until `lift`. Resolves when they were delivered. */
  limit(direction: Direction, bytes: number): Promise<void>;
  lift(): void;
  /** How bytes go on, both ways: in slices, late. Zeros: as they came, at once. */
  shape(how: { sliceBytes: number; delayMs: number }): void;
  onceServerSends(match: Match, action: Action): Trap;
  onceClientSends(match: Match, action: Action): Trap;
}

/**
 * For `onceServerSends`: by type and the beginning of the body. `('C', 'INSERT')` is the answer to an INSERT, which a
 * server sends together with its ReadyForQuery, that is after the commit.
 */
export function serverMessage(type: string, start = ''): MessageMatch {
  return { type, start };
}

interface Connection {
  readonly client: Socket;
  readonly server: Socket;
}

export async function tcpProxy(t: Teardown, target: { host: string; port: number }): Promise<TcpProxy> {
  const orders = { toServer: newOrders('toServer'), toClient: newOrders('toClient') };
  const lanes = new Map<Lane, Connection>();
  const open = new Set<Connection>();
  let connections = 0;
  let refusing = false;

  const listener = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    connections += 1;
    if (refusing) return void client.resetAndDestroy();
    const server = connect({ ...target, allowHalfOpen: true, noDelay: true });
    const connection = { client, server };
    const pair = [new Lane(client, server, orders.toServer), new Lane(server, client, orders.toClient)];
    open.add(connection);
    for (const lane of pair) lanes.set(lane, connection);
    for (const socket of [client, server]) {
      socket.once('close', () => {
        if (!client.destroyed || !server.destroyed) return;
        open.delete(connection);
        for (const lane of pair) lanes.delete(lane);
      });
    }
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;

  const directions = (one?: Direction): Orders[] =>
    one ? [orders[one]] : [orders.toServer, orders.toClient];
  const cutAll = () => open.forEach(cut);
  t.teardown(() => {
    listener.close();
    cutAll();
  });

  return {
    port,
    through(url) {
      const changed = new URL(url);
      changed.hostname = '127.0.0.1';
      changed.port = String(port);
      return changed.href;
    },
    counts: () => ({
      connections,
      open: open.size,
      toServer: orders.toServer.deliveredBytes,
      toClient: orders.toClient.deliveredBytes,
    }),
    cutAll,
    pause(direction) {
      for (const each of directions(direction)) each.paused = true;
    },
    resume(direction) {
      for (const each of directions(direction)) each.paused = false;
      for (const lane of lanes.keys()) lane.flush();
    },
    refuse(on) {
      refusing = on;
    },
    limit: (direction, bytes) =>
      new Promise((resolve) => {
        orders[direction].quota = { leftBytes: bytes, onSpent: resolve };
      }),
    lift() {
      for (const each of directions()) each.quota = null;
      for (const lane of lanes.keys()) lane.flush();
    },
    shape({ sliceBytes, delayMs }) {
      for (const each of directions()) Object.assign(each, { sliceBytes, delayMs });
    },
    onceServerSends: (match, action) => arm(orders.toClient, lanes, { match, action }),
    onceClientSends: (match, action) => arm(orders.toServer, lanes, { match, action }),
  };
}

function newOrders(direction: Direction): Orders {
  return {
    direction,
    paused: false,
    deliveredBytes: 0,
    armed: new Set(),
    quota: null,
    sliceBytes: 0,
    delayMs: 0,
  };
}

function cut({ client, server }: Connection): void {
  reset(client);
  reset(server);
}

function arm(orders: Orders, lanes: Map<Lane, Connection>, trap: { match: Match; action: Action }): Trap {
  let caught: { lane: Lane; connection: Connection } | undefined;
  let disarm = (): void => {};
  const fired = new Promise<void>((resolve) => {
    const armed: Armed = {
      match: trap.match,
      fire(lane) {
        const connection = lanes.get(lane);
        if (!connection) return 'drop';
        caught = { lane, connection };
        if (trap.action === 'hold') lane.hold();
        if (trap.action === 'cut-before') cut(connection);
        // After the chunk has been queued and written.
        if (trap.action === 'cut-after') queueMicrotask(() => endAfter(lane, connection));
        setImmediate(resolve);
        return trap.action === 'cut-before' ? 'drop' : 'queue';
      },
    };
    orders.armed.add(armed);
    disarm = () => void orders.armed.delete(armed);
  });
  return {
    fired,
    release: () => caught?.lane.release(),
    cut: () => caught && cut(caught.connection),
    disarm,
  };
}

function endAfter(lane: Lane, { client, server }: Connection): void {
  const sender = lane.to === server ? client : server;
  reset(sender);
  lane.to.end();
}
