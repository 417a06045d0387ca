/** Client-visible problems: one table, two dialects. Nothing of a stored request or answer ever enters one. */
interface Row {
  readonly status: number;
  readonly title: string;
  /** What the caller should do, and whether with the same key. */
  readonly detail: string;
  /** Follows `detail`, also one that is given. */
  readonly always?: string;
  /** Whether the same request with the same key may be sent again. */
  readonly retryable: boolean;
}

/** For what was refused before any look at the key's record. */
const unused = 'Nothing was forwarded, and no key was used up.';
const noNewKey = 'Do not send it with a new key, which could run the operation a second time';

const table = {
  key_missing: {
    status: 400,
    title: 'Idempotency key missing',
    detail:
      'This request needs an Idempotency-Key header: send a value that is unique to this operation, and the same value on each retry.',
    always: unused,
    retryable: false,
  },
  key_invalid: {
    status: 400,
    title: 'Idempotency key invalid',
    detail: 'Send one Idempotency-Key header with 1 to 255 visible ASCII characters, or one quoted string.',
    always: unused,
    retryable: false,
  },
  tenant_missing: {
    status: 401,
    title: 'Tenant missing',
    detail:
      'This service needs to know the tenant of each guarded request, and the header that names it was absent or empty. Send that header too; the key may be the same.',
    always: unused,
    retryable: false,
  },
  request_invalid: {
    status: 400,
    title: 'Request malformed',
    detail: 'The framing or the target of this request can be read in two ways.',
    always: unused,
    retryable: false,
  },
  not_supported: {
    status: 501,
    title: 'Not supported',
    detail: 'Oncegate does not carry gRPC, nor transfer codings other than chunked.',
    always: unused,
    retryable: false,
  },
  body_too_large: {
    status: 413,
    title: 'Request body too large',
    detail:
      'The body is over the limit for guarded requests (maxRequestBody). Send a smaller one; the key may be the same.',
    always: unused,
    retryable: false,
  },
  overloaded: {
    status: 503,
    title: 'No room for this request now',
    detail:
      'This instance holds all the requests it has memory for. Nothing was forwarded. Retry with the same key after the time in Retry-After.',
    retryable: true,
  },
  body_incomplete: {
    status: 400,
    title: 'Request body incomplete',
    detail: 'The body ended early, came too slowly or was malformed.',
    always: 'Nothing was forwarded: send the whole request again, with the same key.',
    retryable: true,
  },
  store_unavailable: {
    status: 503,
    title: 'Store unavailable',
    detail:
      'The key could not be reserved, so nothing was forwarded. Retry with the same key after the time in Retry-After.',
    retryable: true,
  },
  key_reused: {
    status: 422,
    title: 'Idempotency key reused',
    detail:
      'This key was used with a different request. Use a new key for a new operation; to retry the first one, send exactly the same request with this key.',
    retryable: false,
  },
  caller_differs: {
    status: 401,
    title: 'Caller differs',
    detail:
      'The first request with this key carried credentials, and this one carries none. Repeat it with the same key and the first credentials, not with a new key.',
    retryable: false,
  },
  response_not_retained: {
    status: 409,
    title: 'Response not retained',
    detail: `The request with this key ran to completion, but its answer was too large to keep. It will not run again. ${noNewKey}: fetch the result another way.`,
    retryable: false,
  },
  in_progress: {
    status: 409,
    title: 'Request in progress',
    detail: `A request with this key is still running. Retry with the same key after the time in Retry-After. ${noNewKey}.`,
    retryable: true,
  },
  outcome_unknown: {
    status: 409,
    title: 'Outcome unknown',
    detail: `A request with this key was sent, or may have been, and its outcome is not known. It will not run again until the outcome is settled. ${noNewKey}: find out from the service whether it ran, or ask later with the same key.`,
    retryable: false,
  },
  upstream_unreachable: {
    status: 502,
    title: 'Upstream unreachable',
    detail: 'The request was provably not sent. Retry with the same key after the time in Retry-After.',
    retryable: true,
  },
  upstream_timeout: {
    status: 504,
    title: 'Upstream timed out',
    detail: `The request was sent and no complete answer came in time. Its outcome is unknown; it will not run again. ${noNewKey}: find out from the service whether it ran, or ask later with the same key.`,
    retryable: false,
  },
  upstream_failed: {
    status: 502,
    title: 'Upstream failed',
    detail: `The request was sent and the connection broke before a complete answer. Its outcome is unknown; it will not run again. ${noNewKey}: find out from the service whether it ran, or ask later with the same key.`,
    retryable: false,
  },
  answer_unsaved: {
    status: 503,
    title: 'Answer not saved yet',
    detail: `The request ran, but its answer could not be saved yet. Retry with the same key: it will give the answer and not run again. ${noNewKey}.`,
    retryable: true,
  },
} as const satisfies Record<string, Row>;

export type ProblemCode = keyof typeof table;
export const problemCodes: readonly ProblemCode[] = Object.keys(table) as ProblemCode[];

export type Dialect = 'ietf' | 'stripe';

export interface ProblemReply {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  /** Headers that go with the code. */
  readonly headers: readonly (readonly [string, string])[];
}

export interface ProblemFacts {
  readonly dialect: Dialect;
  readonly requestId: string;
  /** Replaces the table's text where more is known, for instance why a key is invalid. */
  readonly detail?: string;
  /** It is the whole text: what follows else speaks of a key. */
  readonly isWhole?: boolean;
  /** For `in_progress` by option: 202 or 503 instead of 409. Else where it is not that of the code. */
  readonly status?: number;
}

/** Seconds, where waiting helps: long enough to spare us, short enough for a person who waits. */
const retryAfterSeconds: Readonly<Partial<Record<ProblemCode, number>>> = {
  store_unavailable: 1,
  overloaded: 1,
  in_progress: 1,
  upstream_unreachable: 1,
  answer_unsaved: 1,
  // Not outcome_unknown: nothing settles it by itself, and a client that obeyed would ask until it gives up.
};

export function problemReply(code: ProblemCode, facts: ProblemFacts): ProblemReply {
  const row: Row = table[code];
  const headers: (readonly [string, string])[] = [];
  const retryAfter = retryAfterSeconds[code];
  if (retryAfter !== undefined) headers.push(['Retry-After', String(retryAfter)]);
  // SDKs made by Stripe and Stainless retry 409 and 5xx unless told not to.
  if (!row.retryable) headers.push(['Stripe-Should-Retry', 'false'], ['X-Should-Retry', 'false']);
  if (facts.dialect === 'stripe') headers.push(['Request-Id', facts.requestId]);
  const first = facts.detail ?? row.detail;
  const detail = row.always === undefined || facts.isWhole ? first : `${first} ${row.always}`;
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
    ...forSdks(code, status, detail),
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
  const { message, error } = forSdks(code, status, detail);
  const name = code === 'in_progress' ? 'idempotency_key_in_use' : code;
  const body = JSON.stringify({ message, error: { ...error, code: name, request_id: facts.requestId } });
  return { status, contentType: 'application/json', body, headers };
}

/**
 * SDKs that read no other member take an answer without these for a success, or show none of its words: Stripe's read `error`
 * alone, OpenAI's show `error.message`, AWS's show `message`. `type` is one of Stripe's: its SDKs choose their error by it.
 */
function forSdks(code: ProblemCode, status: number, message: string) {
  return { message, error: { type: stripeType(code, status), code, message } };
}

function stripeType(code: ProblemCode, status: number): string {
  if (code === 'key_reused' || code === 'in_progress') return 'idempotency_error';
  return status >= 500 ? 'api_error' : 'invalid_request_error';
}
