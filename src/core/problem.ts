/** Client-visible problems: one table, two dialects. Nothing of a stored request or answer ever enters one. */
interface Row {
  readonly status: number;
  readonly title: string;
  /** What the caller should do. */
  readonly detail: string;
  /** Whether the same request with the same key may be sent again. */
  readonly retryable: boolean;
}

const table = {
  key_missing: {
    status: 400,
    title: 'Idempotency key missing',
    detail:
      'Send an Idempotency-Key header with a value that is unique to this operation, and the same value on each retry.',
    retryable: false,
  },
  key_invalid: {
    status: 400,
    title: 'Idempotency key invalid',
    detail: 'Send one Idempotency-Key header with 1 to 255 visible ASCII characters, or one quoted string.',
    retryable: false,
  },
  tenant_missing: {
    status: 401,
    title: 'Tenant missing',
    detail:
      'This service needs to know the tenant of each guarded request; the header that names it was absent or empty.',
    retryable: false,
  },
  request_invalid: {
    status: 400,
    title: 'Request malformed',
    detail: 'The framing or the target of this request can be read in two ways. Nothing was forwarded.',
    retryable: false,
  },
  not_supported: {
    status: 501,
    title: 'Not supported',
    detail: 'Oncegate does not carry gRPC, nor transfer codings other than chunked. Nothing was forwarded.',
    retryable: false,
  },
  body_too_large: {
    status: 413,
    title: 'Request body too large',
    detail: 'The body is over the limit for guarded requests (maxRequestBody). Nothing was forwarded.',
    retryable: false,
  },
  overloaded: {
    status: 503,
    title: 'Too many requests at once',
    detail:
      'This instance holds all the requests it has memory for. Nothing was forwarded. Retry with the same key.',
    retryable: true,
  },
  body_incomplete: {
    status: 400,
    title: 'Request body incomplete',
    detail: 'The body ended early or was malformed. Nothing was forwarded; send the whole request again.',
    retryable: true,
  },
  store_unavailable: {
    status: 503,
    title: 'Store unavailable',
    detail: 'The key could not be reserved, so nothing was forwarded. Retry with the same key.',
    retryable: true,
  },
  key_reused: {
    status: 422,
    title: 'Idempotency key reused',
    detail: 'This key was used with a different request. Use a new key for a new operation.',
    retryable: false,
  },
  caller_differs: {
    status: 401,
    title: 'Caller differs',
    detail: 'The first request with this key carried credentials; this one carries none.',
    retryable: false,
  },
  response_not_retained: {
    status: 409,
    title: 'Response not retained',
    detail:
      'The request with this key ran to completion, but its answer was too large to keep. It will not run again.',
    retryable: false,
  },
  in_progress: {
    status: 409,
    title: 'Request in progress',
    detail:
      'A request with this key is still running. Retry with the same key after the time in Retry-After.',
    retryable: true,
  },
  outcome_unknown: {
    status: 409,
    title: 'Outcome unknown',
    detail:
      'A request with this key was sent and its outcome is not known. It will not run again until the outcome is settled.',
    retryable: false,
  },
  upstream_unreachable: {
    status: 502,
    title: 'Upstream unreachable',
    detail: 'The request was provably not sent. Retry with the same key.',
    retryable: true,
  },
  upstream_timeout: {
    status: 504,
    title: 'Upstream timed out',
    detail:
      'The request was sent and no complete answer came in time. Its outcome is unknown; it will not run again.',
    retryable: false,
  },
  upstream_failed: {
    status: 502,
    title: 'Upstream failed',
    detail:
      'The request was sent and the connection broke before a complete answer. Its outcome is unknown; it will not run again.',
    retryable: false,
  },
  answer_unsaved: {
    status: 503,
    title: 'Answer not saved yet',
    detail:
      'The request ran, but its answer could not be saved yet. Retry with the same key: it will give the answer and not run again.',
    retryable: true,
  },
} as const satisfies Record<string, Row>;

export type ProblemCode = keyof typeof table;
export const problemCodes = Object.keys(table) as readonly ProblemCode[];

export type Dialect = 'ietf' | 'stripe';

export interface ProblemReply {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  /** Headers that go with the code in every dialect. */
  readonly headers: readonly (readonly [string, string])[];
}

export interface ProblemFacts {
  readonly dialect: Dialect;
  readonly requestId: string;
  /** Replaces the table's text where more is known, for instance why a key is invalid. */
  readonly detail?: string;
  /** 202 instead of 409 for `in_progress`, by option. */
  readonly status?: number;
}

/** Seconds: long enough to spare us, short enough for a person who waits. */
const retryAfterSeconds: Partial<Record<ProblemCode, number>> = {
  store_unavailable: 1,
  overloaded: 1,
  in_progress: 1,
  upstream_unreachable: 1,
  answer_unsaved: 1,
  // Nothing changes until somebody settles it: for people who poll.
  outcome_unknown: 60,
};

export function problemReply(code: ProblemCode, facts: ProblemFacts): ProblemReply {
  const row: Row = table[code];
  const headers: (readonly [string, string])[] = [];
  const retryAfter = retryAfterSeconds[code];
  if (retryAfter !== undefined) headers.push(['Retry-After', String(retryAfter)]);
  // SDKs made by Stripe and Stainless retry 409 and 5xx unless told not to.
  if (!row.retryable) headers.push(['Stripe-Should-Retry', 'false'], ['X-Should-Retry', 'false']);
  const detail = facts.detail ?? row.detail;
  return facts.dialect === 'stripe'
    ? stripeReply(code, row, detail, headers, facts)
    : ietfReply(code, row, detail, headers, facts);
}

type Headers = ProblemReply['headers'];

function ietfReply(
  code: ProblemCode,
  row: Row,
  detail: string,
  headers: Headers,
  facts: ProblemFacts,
): ProblemReply {
  const status = facts.status ?? row.status;
  const body = JSON.stringify({
    type: `urn:oncegate:problem:${code}`,
    title: row.title,
    status,
    detail,
    code,
    retryable: row.retryable,
    requestId: facts.requestId,
  });
  return { status, contentType: 'application/problem+json', body, headers };
}

/** Stripe answers a reused key with 400, not 422, and names a key in use. */
function stripeReply(
  code: ProblemCode,
  row: Row,
  detail: string,
  headers: Headers,
  facts: ProblemFacts,
): ProblemReply {
  const status = code === 'key_reused' ? 400 : (facts.status ?? row.status);
  const body = JSON.stringify({
    error: {
      type: stripeType(code, status),
      code: code === 'in_progress' ? 'idempotency_key_in_use' : code,
      message: detail,
      request_id: facts.requestId,
    },
  });
  return { status, contentType: 'application/json', body, headers };
}

function stripeType(code: ProblemCode, status: number): string {
  if (code === 'key_reused' || code === 'in_progress') return 'idempotency_error';
  return status >= 500 ? 'api_error' : 'invalid_request_error';
}
