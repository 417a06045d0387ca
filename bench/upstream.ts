/** The service behind every contender: does nothing, and counts how often. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answerBody } from './exchange.ts';

let executions = 0;
const length = Buffer.byteLength(answerBody);

const server = createServer((req, res) => {
  req.resume();
  req.once('end', () => {
    executions += 1;
    res.writeHead(201, {
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': length,
      Location: '/v1/charges/ch_3MmlLrLkdIwHu7ix0snN0B15',
      'Cache-Control': 'no-store',
    });
    res.end(answerBody);
  });
});
// Longer than a round: a contender whose turn comes again finds its connections, or closes them itself.
server.keepAliveTimeout = 120_000;
server.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port });
});

process.on('message', () => process.send?.({ executions }));
process.on('disconnect', () => process.exit());
