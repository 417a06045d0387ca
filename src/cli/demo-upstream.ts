import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface DemoUpstream {
  readonly origin: string;
  /** How often it charged. */
  readonly charges: () => number;
  readonly close: () => void;
}

/** A small payments service that charges every time it is asked: without Oncegate in front, a retry charges again. */
export async function startDemoUpstream(): Promise<DemoUpstream> {
  let charges = 0;
  const server: Server = createServer((req, res) => {
    req.resume();
    req.once('end', () => {
      if (req.method === 'POST') charges += 1;
      const answer = req.method === 'POST' ? { charge: `ch_${charges}`, status: 'paid' } : { charges };
      res.writeHead(req.method === 'POST' ? 201 : 200, { 'Content-Type': 'application/json' });
      res.end(`${JSON.stringify(answer)}\n`);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { origin: `http://127.0.0.1:${port}`, charges: () => charges, close };
}
