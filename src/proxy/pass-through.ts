import { type IncomingHttpHeaders, type IncomingMessage, METHODS, type ServerOptions } from 'node:http';
import type { Socket } from 'node:net';
import httpProxy from '@fastify/http-proxy';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Memos } from '../core/memos.ts';
import type { Policy, UpstreamTarget } from '../core/policy.ts';
import type { Budget } from './budget.ts';
import type { PaceLimit } from './pace.ts';
import { Passage, type Respond } from './pass-through-passage.ts';
import { PassThroughPools } from './pass-through-pools.ts';
import { PassThroughFault, sendFault } from './pass-through-problem.ts';
import { DataRequest, Upgrades } from './pass-through-upgrade.ts';
import { Share } from './share.ts';

export interface PassThroughDeps {
  /** Where this request goes, and the form of our own answers to it. */
  readonly policyOf: (method: string, url: string) => Pick<Policy, 'upstream' | 'dialect' | 'cors'>;
  /** Every upstream that can be asked for, known when the config is loaded. */
  readonly targets: readonly UpstreamTarget[];
  readonly budget: Budget;
  readonly memos: Memos;
  /** Milliseconds in which a client takes nothing of its answer, and how fast a body has to come; for tests. */
  readonly stallMs?: number | undefined;
  readonly pace?: PaceLimit | undefined;
  readonly requestIdOf: (request: FastifyRequest) => string;
  /** Lower-case name of the header that names the tenant: its variants are dropped. */
  readonly tenantHeader: string | null;
  /** Whether an answer is still to come, or to end, on this connection. */
  readonly isAnswering: (socket: Socket) => boolean;
}

/** CONNECT is refused before it is routed. TRACE is refused below: it would show the client what we added. */
const methods = METHODS.filter((method) => method !== 'CONNECT');

const noQuery = Object.freeze({});

/**
 * What the server must be made with. Fastify's router decodes the path and refuses what is not UTF-8, such as the
 * `/caf%E9` of an older service: it is shown `/` for every request. The client's own target is put back by the first
 * function that Fastify calls once it has routed, before any hook.
 */
export function passThroughServerOptions(genReqId: (req: IncomingMessage) => string) {
  const http: ServerOptions = { IncomingMessage: DataRequest };
  return {
    http,
    rewriteUrl: () => '/',
    genReqId: (req: IncomingMessage & { originalUrl?: string }): string => {
      if (req.originalUrl !== undefined) req.url = req.originalUrl;
      return genReqId(req);
    },
    requestIdHeader: false,
    routerOptions: { querystringParser: () => noQuery },
  } as const;
}

/** Under this symbol the passage travels through reply-from, among headers that are not sent. */
const passageKey = Symbol('passage');

type Carrier = IncomingHttpHeaders & { [passageKey]: Passage };

/**
 * All that is not guarded. http-proxy has the routes and the answer; of the request it sees only a stand-in for `/`, since
 * it would parse and spell anew the target, drop a GET's body, and send some requests again.
 */
export async function registerPassThrough(app: FastifyInstance, deps: PassThroughDeps): Promise<void> {
  const pools = new PassThroughPools(deps.targets);
  const upgrades = new Upgrades(deps.isAnswering, deps.stallMs);
  upgrades.listen(app.server, (req, res) => app.routing(req, res));
  app.addHook('preClose', (done) => {
    upgrades.close();
    done();
  });
  // After the server has closed: requests under way need their connections.
  app.addHook('onClose', () => pools.destroy());
  // "Without body" is what Fastify does not parse, and so neither limits nor refuses for its content type.
  for (const method of methods) app.addHttpMethod(method, { hasBody: false, overrideExisting: true });

  const send = ({ headers }: { headers: Carrier }, respond: Respond) =>
    headers[passageKey].send(pools, respond);
  await app.register(httpProxy, {
    upstream: 'http://stand-in.invalid',
    preRewrite: () => '/',
    httpMethods: methods,
    proxyPayloads: false,
    internalRewriteLocationHeader: false,
    disableRequestLogging: true,
    // Nothing is ever sent again by reply-from: `maxRetriesOn503: 0` would mean ten times.
    retryMethods: [],
    undici: { request: send as never },
    handler: (request, reply, dest, options) => {
      const fault = refusal(request);
      const requestId = deps.requestIdOf(request);
      const policy = deps.policyOf(request.method, request.url);
      if (fault !== null) return sendFault(reply, fault, { policy, requestId });
      const target = policy.upstream;
      const share = new Share(deps.budget, request.raw.socket.remoteAddress);
      const { memos, tenantHeader, stallMs, pace } = deps;
      const facts = { reply, target, share, memos, requestId, tenantHeader, stallMs, pace };
      const passage = new Passage(facts, upgrades);
      const carrier = { [passageKey]: passage } as Carrier;
      reply.from(dest, { ...options, rewriteRequestHeaders: () => carrier });
    },
    replyOptions: {
      // Sent as it is: Fastify would wait with the head for the body, and give a body without type one.
      onResponse: (_request, reply, res) => {
        reply.hijack();
        (res.stream as unknown as Passage).sendTo((reply as FastifyReply).raw);
      },
      onError: (reply, { error }) => {
        const fault =
          error.cause instanceof PassThroughFault ? error.cause : new PassThroughFault('upstream_failed');
        const request = reply.request as FastifyRequest;
        const policy = deps.policyOf(request.method, request.url);
        sendFault(reply as FastifyReply, fault, { policy, requestId: deps.requestIdOf(request) });
      },
    },
  });
}

function refusal(request: FastifyRequest): PassThroughFault | null {
  if (request.method === 'TRACE') return new PassThroughFault('not_supported');
  // `*`, or the absolute form that only a forward proxy is sent: it names a host that need not be the one in Host.
  return request.url.startsWith('/') ? null : new PassThroughFault('request_invalid');
}
