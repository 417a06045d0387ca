import fastify, { type FastifyInstance, type FastifyReply } from 'fastify';
import { asError } from '../errors.ts';

export interface OpsDeps {
  /** null while this instance takes work; else why it does not. */
  readonly notReady: () => string | null;
  readonly started: () => boolean;
  /** Rejects with the reason when the store takes no reservations. */
  readonly checkStore: () => Promise<void>;
  readonly metrics: { readonly contentType: string; readonly text: () => Promise<string> };
}

/** Milliseconds one look at the store counts: probes of several kinds must not add load. */
const checkLifeMs = 1_000;

/** The ops port. `/livez` never touches the store: a database outage must not restart every sidecar. */
export function createOpsServer(deps: OpsDeps): FastifyInstance {
  const app = fastify({ forceCloseConnections: true });
  let checkedMs = Number.NEGATIVE_INFINITY;
  let checked: Promise<string | null> = Promise.resolve(null);

  const storeFault = (): Promise<string | null> => {
    if (performance.now() - checkedMs > checkLifeMs) {
      checkedMs = performance.now();
      checked = deps.checkStore().then(
        () => null,
        (error) => `the store takes no reservations: ${asError(error).message}`,
      );
    }
    return checked;
  };

  app.get('/livez', (_request, reply) => say(reply, null));
  app.get('/startupz', (_request, reply) => say(reply, deps.started() ? null : 'starting'));
  app.get('/readyz', async (_request, reply) => say(reply, deps.notReady() ?? (await storeFault())));
  app.get('/metrics', async (_request, reply) => {
    reply.type(deps.metrics.contentType);
    return await deps.metrics.text();
  });
  return app;
}

function say(reply: FastifyReply, fault: string | null): FastifyReply {
  return reply
    .code(fault === null ? 200 : 503)
    .type('text/plain; charset=utf-8')
    .send(`${fault ?? 'ok'}\n`);
}
