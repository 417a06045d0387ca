import { exposedWith, grantedAgain, problemGrant } from '../core/cors.ts';
import { type ProblemCode, problemReply } from '../core/problem.ts';
import type { Capture } from './capture.ts';
import { sealAfterRefusal } from './connections.ts';
import type { Exchange } from './exchange.ts';
import { Untaken } from './untaken.ts';

export type IdempotencyStatus = 'executed' | 'replayed' | 'released' | 'in_progress' | 'unknown';

/** What a guarded request is answered with. */
export type Reply =
  | {
      readonly kind: 'problem';
      readonly code: ProblemCode;
      readonly detail?: string;
      readonly status?: number;
      /** Where the code alone does not say it. */
      readonly idempotency?: IdempotencyStatus;
    }
  | {
      readonly kind: 'answer';
      readonly status: number;
      /** Flat list of names and values, without framing. */
      readonly headers: readonly string[];
      readonly body: Buffer;
      readonly idempotency: IdempotencyStatus;
      readonly retainUntilMs: number | null;
      /** Not to the request that the upstream answered: what the upstream said to that one's origin may not be for this one. */
      readonly isRepeated: boolean;
    }
  /** An answer too large to hold, on its way: settled already, or `in_progress` and settled after its last byte. */
  | {
      readonly kind: 'stream';
      readonly capture: Capture;
      /** Flat list of names and values, with the framing. */
      readonly headers: readonly string[];
      readonly idempotency: IdempotencyStatus;
      readonly retainUntilMs: number | null;
    }
  /** Nobody is there to be answered. */
  | { readonly kind: 'gone' };

const statusOfProblem: Partial<Record<ProblemCode, IdempotencyStatus>> = {
  in_progress: 'in_progress',
  outcome_unknown: 'unknown',
  upstream_timeout: 'unknown',
  upstream_failed: 'unknown',
  upstream_unreachable: 'released',
  response_not_retained: 'executed',
  answer_unsaved: 'executed',
};

export async function send(exchange: Exchange, reply: Reply): Promise<void> {
  if (exchange.clientGone) {
    // What was not read yet must still be read, or the upstream would be held up.
    if (reply.kind === 'stream') reply.capture.discard();
    return;
  }
  switch (reply.kind) {
    case 'gone':
      return;
    case 'problem':
      sendProblem(exchange, reply);
      return;
    case 'answer':
      sendAnswer(exchange, reply);
      return;
    case 'stream': {
      const { headers } = reply;
      const head = [...headers, ...exposedWith(headers), ...idempotencyHeaders(exchange, reply)];
      try {
        await reply.capture.streamTo(exchange.res, head);
      } catch (error) {
        // Its client gets nothing; the upstream must not be held up by that.
        reply.capture.discard();
        throw error;
      }
      return;
    }
  }
}

function idempotencyHeaders(
  { requestId }: Exchange,
  { idempotency, retainUntilMs }: Extract<Reply, { kind: 'answer' | 'stream' }>,
): string[] {
  const headers = ['Idempotency-Status', idempotency, 'X-Request-Id', requestId];
  if (idempotency === 'replayed') headers.push('Idempotent-Replayed', 'true');
  if (retainUntilMs !== null) headers.push('Idempotency-Expires', dateText(retainUntilMs));
  return headers;
}

/** By the second: what is stored in one ends in one, and spelling a date costs as much as reading a request's JSON. */
const dates = new Map<number, string>();
const maxDates = 1_000;

function dateText(ms: number): string {
  const second = Math.floor(ms / 1000);
  let text = dates.get(second);
  if (text === undefined) {
    text = new Date(second * 1000).toUTCString();
    if (dates.size === maxDates) dates.clear();
    dates.set(second, text);
  }
  return text;
}

/** Up to here head and body go as one string, in one write: cheaper than two pieces, and than keeping them apart. */
const oneWriteBytes = 8_192;

function sendAnswer(exchange: Exchange, reply: Extract<Reply, { kind: 'answer' }>): void {
  const { req, res, policy } = exchange;
  const { status, body } = reply;
  const given = reply.isRepeated
    ? grantedAgain(reply.headers, policy.cors, req.headers.origin)
    : reply.headers;
  const headers = given.concat(exposedWith(given), idempotencyHeaders(exchange, reply));
  const bodiless = status === 204 || status === 304;
  if (!bodiless) headers.push('Content-Length', String(body.length));
  res.writeHead(status, headers);
  if (bodiless) res.end();
  else if (body.length > oneWriteBytes) return pour(exchange, body);
  else res.end(body.toString('latin1'), 'latin1');
  // Most answers are with the system by now.
  if (res.writableLength > 0) holdUntilTaken(exchange).update();
}

/** Written at a time: of a larger piece nobody sees how much the client has taken. */
const pieceBytes = 65_536;

function pour(exchange: Exchange, body: Buffer): void {
  const { res } = exchange;
  let at = 0;
  let untaken: Untaken | null = null;
  const goOn = (): void => {
    for (let flowing = true; flowing && at < body.length; ) {
      const piece = body.subarray(at, (at += pieceBytes));
      if (at < body.length) flowing = res.write(piece);
      else res.end(piece);
    }
    if (untaken === null && res.writableLength > 0)
      untaken = holdUntilTaken(exchange, () => Math.max(0, body.length - at));
    untaken?.update();
  };
  res.on('drain', goOn);
  goOn();
}

/** Without this a client could fill our memory by asking and never reading. */
function holdUntilTaken({ res, share }: Exchange, bytes = () => 0): Untaken {
  const untaken = new Untaken(share, res, { bytes, drop: () => {} });
  res.once('close', () => untaken.close());
  return untaken;
}

/** After these the connection is not used again: its rest is unwanted, or cannot be trusted to be what it seems. */
const closing: ReadonlySet<ProblemCode> = new Set([
  'body_too_large',
  'overloaded',
  'body_incomplete',
  'request_invalid',
  'not_supported',
]);
/** Milliseconds that the rest of an unwanted body is read and thrown away, so that the client gets to see the answer. */
const lingerMs = 1_000;

function sendProblem(exchange: Exchange, reply: Extract<Reply, { kind: 'problem' }>): void {
  const { req, res, policy, requestId } = exchange;
  const { code, detail, idempotency = statusOfProblem[code] } = reply;
  const status = code === 'in_progress' ? policy.inFlight.answer : reply.status;
  const problem = problemReply(code, {
    dialect: policy.dialect,
    requestId,
    ...(detail === undefined ? {} : { detail }),
    ...(status === undefined ? {} : { status }),
  });
  const headers = [
    'Content-Type',
    problem.contentType,
    'X-Request-Id',
    requestId,
    'Cache-Control',
    'no-store',
  ];
  if (idempotency !== undefined) headers.push('Idempotency-Status', idempotency);
  headers.push(...problem.headers.flat(), ...problemGrant(policy.cors, req.headers.origin));
  headers.push('Content-Length', String(Buffer.byteLength(problem.body)));
  if (!closing.has(code)) {
    res.writeHead(problem.status, headers);
    res.end(problem.body);
    return;
  }
  sealAfterRefusal(req.socket);
  headers.push('Connection', 'close');
  res.writeHead(problem.status, headers);
  res.write(problem.body);
  const end = () => res.end();
  if (req.complete) return void end();
  const timer = setTimeout(end, lingerMs);
  req.once('close', () => clearTimeout(timer));
  req.once('end', end);
  req.resume();
}
