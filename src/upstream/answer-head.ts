import type { Ending } from '../core/settle.ts';

/** The head of a final answer, and what it says about the outcome. */
export interface AnswerHead {
  readonly status: number;
  /** Flat list, names as sent, decoded as latin1: the bytes survive. */
  readonly headers: string[];
  readonly hasRetryAfter: boolean;
  readonly upstreamSays: string | null;
  /** Only the end of the connection ends the body: nobody can tell a whole one from a cut one. */
  readonly closeFramed: boolean;
}

export function readHead(method: string, status: number, raw: readonly Buffer[]): AnswerHead {
  const headers = new Array<string>(raw.length);
  let hasRetryAfter = false;
  let upstreamSays: string | null = null;
  let hasLength = false;
  let codings: string | null = null;
  for (let i = 0; i < raw.length; i += 2) {
    const name = (raw[i] as Buffer).toString('latin1');
    const value = (raw[i + 1] as Buffer).toString('latin1');
    headers[i] = name;
    headers[i + 1] = value;
    // The length first: few names are worth lower-casing on the hot path.
    switch (name.length) {
      case 11:
        if (name.toLowerCase() === 'retry-after') hasRetryAfter ||= value.length > 0;
        break;
      case 14:
        if (name.toLowerCase() === 'content-length') hasLength = true;
        break;
      case 16:
        if (name.toLowerCase() === 'oncegate-outcome') upstreamSays = agree(upstreamSays, value);
        break;
      case 17:
        if (name.toLowerCase() === 'transfer-encoding') codings = value;
        break;
    }
  }
  return {
    status,
    headers,
    hasRetryAfter,
    upstreamSays,
    closeFramed: isCloseFramed(method, status, hasLength, codings),
  };
}

/** Sent twice, as two fields or as one list: the words must be the same, else the upstream contradicts itself. */
function agree(before: string | null, value: string): string {
  let word = before;
  for (const part of value.split(',')) {
    const next = part.trim().toLowerCase();
    if (word !== null && word !== next) return 'unknown';
    word = next;
  }
  return word as string;
}

/** RFC 9112 section 6.3, as llhttp reads it; a Transfer-Encoding that does not end in chunked runs to the close. */
export function isCloseFramed(
  method: string,
  status: number,
  hasLength: boolean,
  codings: string | null,
): boolean {
  if (method === 'HEAD' || isBodiless(status)) return false;
  if (codings !== null) return !/(?:^|[,\s])chunked\s*$/i.test(codings);
  return !hasLength;
}

/** The head is the whole answer, whatever length it claims (RFC 9110 sections 15.3.5 and 15.4.5). */
export function isBodiless(status: number): boolean {
  return status === 204 || status === 304;
}

export function answered(head: AnswerHead): Ending {
  return {
    kind: 'answered',
    status: head.status,
    hasRetryAfter: head.hasRetryAfter,
    upstreamSays: head.upstreamSays,
    closeFramed: head.closeFramed,
  };
}
