import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { findKey } from '../core/key.ts';
import { overridingMethods } from '../core/method-override.ts';
import { problemReply } from '../core/problem.ts';
import { ambiguousPath, type FramingFault, framingFault } from '../core/request.ts';
import { isGuarded } from '../core/routes.ts';
import { passDone } from '../events.ts';
import type { Budget } from './budget.ts';
import { Connections, type Expected, memoryOf, sealAfterRefusal } from './connections.ts';
import type { ProxyDeps } from './deps.ts';
import { Exchange } from './exchange.ts';
import { handle } from './handle.ts';
import { passThroughServerOptions, registerPassThrough } from './pass-through.ts';
import { isDeclinedUpgrade } from './pass-through-upgrade.ts';
import { send } from './reply.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Answered by us, and so not passed through. */
    taken: boolean;
  }
}

/** Milliseconds for a client to read why its bytes were refused. */
const unreadableLingerMs = 1_000;
const usableRequestId = /^[\w.:@/+=-]{1,128}$/;

/** What a request is refused with before anything else is known of it. */
type Refusal = Omit<FramingFault, 'code'> & {
  readonly code: FramingFault['code'] | 'overloaded';
  /** Of ours, for the log. */
  readonly fault?: string;
};

const noTunnel: Refusal = {
  code: 'not_supported',
  detail: 'CONNECT is not carried: Oncegate is no forward proxy.',
};
const stopping: Refusal = {
  code: 'overloaded',
  detail:
    'This instance is stopping and takes no new request. Nothing was forwarded. Retry with the same key after the time in Retry-After.',
};

const crowded: Refusal = {
  code: 'overloaded',
  detail:
    'There is no room for this request at the moment. Nothing was forwarded. Send it again after the time in Retry-After.',
};

/**
 * Cannot happen over plain HTTP: Node parses on the socket that its 'connection' event gave us, and src/listen.ts lets only one server
 * listen. Over TLS it would be another object. Then the request is refused, for nothing would limit or seal its connection.
 */
const stray: Refusal = {
  code: 'overloaded',
  detail:
    'This instance cannot take requests on this connection, which is a fault of its own. Nothing was forwarded. Retry with the same key after the time in Retry-After.',
  fault: 'fault in oncegate: a request came on a connection that nobody announced',
};

export interface ProxyServer {
  readonly app: FastifyInstance;
  /** Ends every connection, also one that became or wants to become a WebSocket. */
  readonly cut: () => void;
}

/** The data port: guarded requests are taken here, all others pass through. `heads`: memory of connections and of requests without their bodies. */
export async function createProxyServer(deps: ProxyDeps, heads: Budget): Promise<ProxyServer> {
  const options = passThroughServerOptions(requestIdOf);
  const app = fastify({
    ...options,
    // Node would answer a request without Host by itself, and go on with what stands behind it.
    http: { ...options.http, requireHostHeader: false },
    forceCloseConnections: 'idle',
    // In its own words.
    return503OnClosing: false,
    clientErrorHandler: (error, socket) => {
      // The refusal of a request before these bytes is still to be read, and ends the connection.
      if (connections.isRefused(socket)) return;
      // A request before these bytes still runs: what we say now would be taken for its answer.
      if (connections.isBusy(socket)) socket.destroy();
      else refuseUnreadable(error, socket, connections.isAnswering(socket));
    },
  });
  const connections = new Connections(app.server, heads);
  app.addHook('preClose', (done) => {
    connections.endAfterAnswers();
    done();
  });
  // 0: no limit, which would hide a key behind 2,000 small headers, or be answered by Node itself. framingFault has ours.
  app.server.maxHeadersCount = 0;
  const guardedMethods = new Set(
    deps.policies.all.flatMap((policy) => (policy.mode === 'enforce' ? policy.methods : [])),
  );
  // Node would answer it with an empty 417; framingFault has ours.
  app.server.on('checkExpectation', (req, res) => app.routing(req, res));
  app.addHook('onRequest', (request, reply, done) => {
    const expected = connections.expect(reply.raw);
    if (expected === 'ignored') return;
    // Node has thrown away what came behind it in the same packet: the next bytes may be the midst of something.
    if (isDeclinedUpgrade(request.raw)) connections.sealAfterDecline(reply.raw);
    const refusal = refusalOf(expected, connections.isEnding);
    if (!take(deps, guardedMethods, { request, reply, refusal })) done();
  });
  app.decorateRequest('taken', false);
  app.addHook('onResponse', (request, reply, done) => {
    if (!request.taken) announce(deps, request, reply);
    done();
  });
  await registerPassThrough(app, {
    policyOf: (method, url) => deps.policies.policyFor(method, pathOf(url)),
    budget: deps.budget,
    memos: deps.memos,
    targets: deps.policies.all.map((policy) => policy.upstream),
    requestIdOf: (request) => request.id,
    tenantHeader: deps.identity.tenantHeader,
    isAnswering: (socket) => connections.isAnswering(socket),
  });
  return { app, cut: () => connections.cut() };
}

function refusalOf(expected: Exclude<Expected, 'ignored'>, isEnding: boolean): Refusal | null {
  if (expected === 'stray') return stray;
  if (isEnding) return stopping;
  return expected === 'crowded' ? crowded : null;
}

/** true: this request is answered here and goes no further. */
function take(
  deps: ProxyDeps,
  guardedMethods: ReadonlySet<string>,
  { request, reply, refusal }: { request: FastifyRequest; reply: FastifyReply; refusal: Refusal | null },
): boolean {
  const req = request.raw;
  const method = req.method ?? '';
  const path = pathOf(req.url ?? '/');
  // A TRACE is never carried: passing through refuses it, whatever it names.
  const others = method === 'TRACE' ? [] : overridingMethods(req.rawHeaders);
  const policy =
    others.length === 0
      ? deps.policies.policyFor(method, path)
      : deps.policies.policyForAny([method, ...others], path);
  const mayBeGuarded = guardedMethods.has(method) || others.some((other) => guardedMethods.has(other));
  const fault = refusal ?? faultOf(req, path, mayBeGuarded);
  const guards = isGuarded(policy, method) || others.some((other) => isGuarded(policy, other));
  if (fault === null && !guards) return false;
  if (fault === null && !policy.requireKey && !carriesKey(deps, req)) return false;
  request.taken = true;
  reply.hijack();
  const memory = memoryOf(reply.raw);
  const exchange = new Exchange(req, reply.raw, {
    policy,
    requestId: request.id,
    budget: deps.budget,
    memory,
  });
  void (fault === null ? handle(deps, exchange) : refuse(exchange, fault));
  return true;
}

/**
 * The path is judged by the method alone, not by its route: one that can be read in two ways must not slip past the
 * guard of the other reading.
 */
function faultOf(req: IncomingMessage, path: string, mayBeGuarded: boolean): Refusal | null {
  const fault = req.method === 'CONNECT' ? noTunnel : framingFault(req);
  if (fault !== null || !mayBeGuarded || !ambiguousPath(path)) return fault;
  return {
    code: 'request_invalid',
    detail:
      'Servers disagree about which resource this path names: send it without dot segments, empty segments and encoded slashes.',
  };
}

function carriesKey({ identity }: ProxyDeps, req: IncomingMessage): boolean {
  return findKey(req.rawHeaders, identity.keySources, identity.keyLimits).kind !== 'none';
}

async function refuse(exchange: Exchange, { fault, ...problem }: Refusal): Promise<void> {
  exchange.verdict = problem.code;
  if (fault !== undefined) exchange.error = new Error(fault);
  await send(exchange, { kind: 'problem', ...problem });
  exchange.done();
}

function announce({ policies }: ProxyDeps, { id, method, url }: FastifyRequest, reply: FastifyReply): void {
  const { route } = policies.policyFor(method, pathOf(url));
  passDone.publish({ requestId: id, method, route, status: reply.statusCode, totalMs: reply.elapsedTime });
}

function pathOf(url: string): string {
  const mark = url.indexOf('?');
  return mark === -1 ? url : url.slice(0, mark);
}

/** The client's own id where it is harmless, so that its logs and ours can be joined. */
function requestIdOf(req: { readonly headers: IncomingMessage['headers'] }): string {
  const given = req.headers['x-request-id'];
  return typeof given === 'string' && usableRequestId.test(given) ? given : randomUUID();
}

/** Of a request that is passed through the body may be on its way already. */
const bodyMalformed =
  'The body of this request is malformed. A guarded request was not forwarded; of another one a part may have been.';

/** Bytes that are not a request, or `inBody` not the rest of one: answered on the bare socket, for there is nothing else. */
function refuseUnreadable(error: Error & { code?: string }, socket: Socket, inBody: boolean): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  // After a timeout the parser still works: the rest of the request could come now, and would run.
  sealAfterRefusal(socket);
  const requestId = randomUUID();
  const [code, detail, statusLine] =
    error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
      ? (['body_incomplete', 'The request did not arrive in time.', '408 Request Timeout'] as const)
      : error.code === 'HPE_HEADER_OVERFLOW'
        ? ([
            'request_invalid',
            'The headers are over 16 kB: send less.',
            '431 Request Header Fields Too Large',
          ] as const)
        : (['request_invalid', 'This is not a well-formed HTTP/1.1 request.', '400 Bad Request'] as const);
  const problem = problemReply(code, {
    dialect: 'ietf',
    requestId,
    detail: inBody ? bodyMalformed : detail,
    isWhole: inBody,
    status: Number(statusLine.slice(0, 3)),
  });
  const head = `HTTP/1.1 ${statusLine}\r\nContent-Type: ${problem.contentType}\r\nX-Request-Id: ${requestId}\r\n`;
  socket.end(
    `${head}Content-Length: ${Buffer.byteLength(problem.body)}\r\nConnection: close\r\n\r\n${problem.body}`,
  );
  // A client that never closes must not keep the socket.
  const timer = setTimeout(() => socket.destroy(), unreadableLingerMs);
  socket.once('close', () => clearTimeout(timer));
}
