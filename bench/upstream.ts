/** The service behind every contender: does nothing, and counts how often. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answerBody, answerHeaders, slowMs, slowPath } from './exchange.ts';

let executions = 0;
const headers = { ...answerHeaders, 'Content-Length': Buffer.byteLength(answerBody) };

function answer(res: ServerResponse, status: number): void {
  res.writeHead(status, headers);
  res.end(answerBody);
}

const server = createServer((req, res) => {
  req.resume();
  req.once('end', () => {
    executions += 1;
    if (req.url === slowPath) setTimeout(() => answer(res, 201), slowMs);
    else answer(res, req.method === 'GET' ? 200 : 201);
  });
});
// Longer than a round: a contender whose turn comes again finds its connections, or closes them itself.
server.keepAliveTimeout = 120_000;
server.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port });
});

process.on('message', () => process.send?.({ executions }));
process.on('disconnect', () => process.exit());
