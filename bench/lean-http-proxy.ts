/** Contender: @fastify/http-proxy as somebody sets it up who counts the microseconds of logging. Guards nothing. */
import httpProxy from '@fastify/http-proxy';
import { createLoggedServer } from './logged-server.ts';

const [upstream, port] = process.argv.slice(2) as [string, string];

const app = createLoggedServer();
// Its own two lines a request are off: each contender writes one.
await app.register(httpProxy, { upstream, disableRequestLogging: true });
await app.listen({ host: '127.0.0.1', port: Number(port) });
