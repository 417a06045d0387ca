import type { FastifyReply } from 'fastify';
import { problemGrant } from '../core/cors.ts';
import type { Policy } from '../core/policy.ts';
import { type ProblemCode, problemReply } from '../core/problem.ts';
import { sealAfterRefusal } from './connections.ts';

type Fault = Extract<
  ProblemCode,
  | 'request_invalid'
  | 'not_supported'
  | 'overloaded'
  | 'body_incomplete'
  | 'upstream_unreachable'
  | 'upstream_timeout'
  | 'upstream_failed'
>;

/** The table's own texts speak of keys, of which a request that is passed through has none. */
const details: Record<Fault, string> = {
  request_invalid:
    'The request target is not a path: send one that starts with a slash. Nothing was forwarded.',
  not_supported: 'TRACE is not carried: nothing was forwarded.',
  overloaded:
    'There is no room for this request at the moment. Nothing was forwarded; send the request again.',
  body_incomplete: 'The body came too slowly. Nothing was forwarded; send the request again.',
  upstream_unreachable: 'The upstream could not be reached. The request was not sent and may be sent again.',
  upstream_timeout: 'The request was sent, and no answer began in time. Whether it ran is not known.',
  upstream_failed:
    'The request was sent, and the connection broke before an answer. Whether it ran is not known.',
};

/** Why a request could not be passed through. */
export class PassThroughFault extends Error {
  readonly code: Fault;

  constructor(code: Fault, options?: ErrorOptions) {
    super(details[code], options);
    this.name = 'PassThroughFault';
    this.code = code;
  }
}

/** Readers may disagree about where such a request ends, or nobody waits for its end. */
const closing: ReadonlySet<Fault> = new Set(['request_invalid', 'not_supported', 'body_incomplete']);

interface Asked {
  readonly policy: Pick<Policy, 'dialect' | 'cors'>;
  readonly requestId: string;
}

export function sendFault(reply: FastifyReply, fault: PassThroughFault, { policy, requestId }: Asked): void {
  if (closing.has(fault.code)) {
    sealAfterRefusal(reply.raw.req.socket);
    reply.header('connection', 'close');
  }
  const { code, message: detail } = fault;
  const problem = problemReply(code, { dialect: policy.dialect, requestId, detail, isWhole: true });
  reply.code(problem.status).type(problem.contentType);
  reply.header('x-request-id', requestId).header('cache-control', 'no-store');
  for (const [name, value] of problem.headers) {
    // Whether to send it again is not ours to say of a request that we do not guard: a GET may well be.
    if (!name.endsWith('Should-Retry')) reply.header(name, value);
  }
  const grant = problemGrant(policy.cors, reply.raw.req.headers.origin);
  for (let i = 0; i < grant.length; i += 2) reply.header(grant[i] as string, grant[i + 1] as string);
  // Bytes: to a text Fastify would add a charset, which JSON has none of.
  void reply.send(Buffer.from(problem.body));
}
