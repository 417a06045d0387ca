import type { FastifyReply } from 'fastify';
import { type ProblemCode, problemReply } from '../core/problem.ts';

type Fault = Extract<
  ProblemCode,
  'request_invalid' | 'not_supported' | 'upstream_unreachable' | 'upstream_timeout' | 'upstream_failed'
>;

/** The table's own texts speak of keys, of which a request that is passed through has none. */
const details: Record<Fault, string> = {
  request_invalid: 'The request target is not a path. Nothing was forwarded.',
  not_supported: 'TRACE is not carried. Nothing was forwarded.',
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

export function sendFault(reply: FastifyReply, fault: PassThroughFault, requestId: string): void {
  const problem = problemReply(fault.code, { dialect: 'ietf', requestId, detail: fault.message });
  reply.code(problem.status).type(problem.contentType);
  reply.header('x-request-id', requestId).header('cache-control', 'no-store');
  for (const [name, value] of problem.headers) {
    // Whether to send it again is not ours to say of a request that we do not guard: a GET may well be.
    if (!name.endsWith('Should-Retry')) reply.header(name, value);
  }
  // Bytes: to a text Fastify would add a charset, which JSON has none of.
  void reply.send(Buffer.from(problem.body));
}
