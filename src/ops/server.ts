import fastify, { type FastifyInstance, type FastifyReply } from 'fastify';

export interface OpsDeps {
  /** null once the start is over; else what is still to be done. */
  readonly notStarted: () => string | null;
  /** null while requests are welcome; else why not. */
  readonly notReady: () => Promise<string | null>;
  readonly metrics: { readonly contentType: string; readonly text: () => Promise<string> };
}

/** The ops port. `/livez` never touches the store: a database outage must not restart every sidecar. */
export function createOpsServer({ notStarted, notReady, metrics }: OpsDeps): FastifyInstance {
  const app = fastify({ forceCloseConnections: true });
  app.get('/livez', (_request, reply) => say(reply, null));
  app.get('/startupz', (_request, reply) => say(reply, notStarted()));
  app.get('/readyz', async (_request, reply) => say(reply, await notReady()));
  app.get('/metrics', async (_request, reply) => {
    reply.type(metrics.contentType);
    return await metrics.text();
  });
  return app;
}

function say(reply: FastifyReply, fault: string | null): FastifyReply {
  return reply
    .code(fault === null ? 200 : 503)
    .type('text/plain; charset=utf-8')
    .send(`${fault ?? 'ok'}\n`);
}
