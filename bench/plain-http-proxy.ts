/** Contender: @fastify/http-proxy with its defaults and those of Fastify, logging switched on. Guards nothing. */
import httpProxy from '@fastify/http-proxy';
import fastify from 'fastify';

const [upstream, port] = process.argv.slice(2) as [string, string];

const app = fastify({ logger: true });
await app.register(httpProxy, { upstream });
await app.listen({ host: '127.0.0.1', port: Number(port) });
process.on('disconnect', () => process.exit());
