import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Teardown } from '../test/helpers/postgres.ts';

/** One request that reached the upstream: it counts from its first line on, whatever becomes of it. */
export interface Start {
  readonly number: number;
  readonly key: string;
  readonly attempt: string;
  readonly epoch: string;
}

export type Respond = (start: Start, res: ServerResponse) => void;

export interface LoggedUpstream {
  readonly url: string;
  /** All of them, in order. */
  readonly starts: readonly Start[];
  startsOf(key: string): readonly Start[];
}

/** A service that remembers each start, and makes an answer of its own for each, so that no two can be confused. */
export async function loggedUpstream(t: Teardown, respond: Respond = answer): Promise<LoggedUpstream> {
  const starts: Start[] = [];
  const byKey = new Map<string, Start[]>();
  const server = createServer((req, res) => {
    if (req.method === 'POST') {
      const header = (name: string): string => String(req.headers[name] ?? '');
      const start = {
        number: starts.length + 1,
        key: header('idempotency-key'),
        attempt: header('oncegate-attempt'),
        epoch: header('oncegate-epoch'),
      };
      starts.push(start);
      byKey.set(start.key, [...(byKey.get(start.key) ?? []), start]);
      // The body says nothing that the key does not.
      req.resume().on('end', () => respond(start, res));
    } else {
      req.resume();
      res.end();
    }
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    starts,
    startsOf: (key) => byKey.get(key) ?? [],
  };
}

export const bodyOf = ({ number, key }: Start): string => `{"start":${number},"key":"${key}"}`;

export function answer(start: Start, res: ServerResponse): void {
  // Whoever asked may have gone.
  if (res.destroyed) return;
  const headers = { 'Content-Type': 'application/json', Location: `/starts/${start.number}` };
  res.writeHead(201, headers).end(bodyOf(start));
}
