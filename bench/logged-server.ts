import fastify, { type FastifyInstance } from 'fastify';
import { destination } from 'pino';

/** Fastify that writes one line a request, in the background, as Oncegate does: Fastify's own two, at once, cost more. */
export function createLoggedServer(): FastifyInstance {
  const app = fastify({
    logger: { level: 'info', stream: destination({ dest: 1, sync: false }) },
    disableRequestLogging: true,
  });
  app.addHook('onResponse', (request, reply, done) => {
    const { method, url } = request;
    request.log.info({ method, url, status: reply.statusCode, ms: reply.elapsedTime }, 'request');
    done();
  });
  process.on('disconnect', () => process.exit());
  return app;
}
