import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface DemoUpstream {
  readonly origin: string;
  readonly close: () => void;
}

/** Milliseconds a charge takes: long enough to press Ctrl-C and ask again. */
const slowMs = 700;
/** Of so many charges one is made and its answer lost. Not the first, which people try first. */
const lostEvery = 3;

/**
 * A small payments service as they are: it charges every time it is asked, is slow, and sometimes the connection breaks
 * after it has charged. Without Oncegate in front a retry charges again.
 */
export async function startDemoUpstream(onCharge: () => void): Promise<DemoUpstream> {
  let charges = 0;
  const server: Server = createServer((req, res) => {
    req.resume();
    req.once('end', () => {
      if (req.method !== 'POST') return answer(res, 200, { charges });
      charges += 1;
      onCharge();
      const charge = `ch_${charges}`;
      const isLost = charges % lostEvery === 0;
      return setTimeout(() => (isLost ? cut(req) : answer(res, 201, { charge, status: 'paid' })), slowMs);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { origin: `http://127.0.0.1:${port}`, close };
}

function answer(res: ServerResponse, status: number, body: object): void {
  res.writeHead(status, { 'Content-Type': 'application/json' });
  res.end(`${JSON.stringify(body)}\n`);
}

function cut(req: IncomingMessage): void {
  req.socket.destroy();
}
