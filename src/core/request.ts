import { isVariantOf, readsAs } from './fold-name.ts';
import { headerName } from './header-name.ts';
import { formatKey } from './key.ts';
import type { Memos } from './memos.ts';
import type { ForwardKey } from './policy.ts';
import { connectionNames } from './response.ts';

/** What is sent upstream of a client's request, and what is too malformed to be sent at all. */

/** The connection that a request came on. */
export interface Forwarded {
  readonly for: string;
  readonly proto: string;
  /** Empty: an HTTP/1.0 client named none. */
  readonly host: string;
}

export interface UpstreamHeaderOptions {
  /** Lower-case names of the headers that may carry the key. */
  readonly sources: readonly string[];
  readonly forwardKey: ForwardKey;
  readonly key: string;
  readonly attempt: string;
  readonly epoch: string;
  readonly forwarded: Forwarded;
  readonly host: string;
  readonly requestId: string;
  /** Lower-case name of the header that names the tenant: its variants are dropped. */
  readonly tenantHeader: string | null;
}

/** A flat list, as undici takes it. */
export function upstreamHeaders(
  memos: Memos,
  rawHeaders: readonly string[],
  options: UpstreamHeaderOptions,
): string[] {
  const { forwardKey, forwarded, requestId, attempt, epoch } = options;
  const named = connectionNames(memos, rawHeaders);
  const headers = ['host', options.host, ...forwardedHeaders(forwarded, requestId)];
  headers.push('oncegate-attempt', attempt, 'oncegate-epoch', epoch, 'accept-encoding', 'identity');
  if (forwardKey.kind === 'rename') headers.push(forwardKey.header, formatKey(options.key));
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    const { lower, isOursWhenGuarded } = headerName(memos, name);
    if (isOursWhenGuarded || named.has(lower)) continue;
    if (isReplaced(lower, options)) continue;
    headers.push(name, rawHeaders[i + 1] as string);
  }
  return headers;
}

/** Who asked, of guarded and of passed-through requests. Ours go before the client's: some upstreams read only so many. */
export function forwardedHeaders(forwarded: Forwarded, requestId: string): string[] {
  const headers = ['x-forwarded-for', forwarded.for, 'x-forwarded-proto', forwarded.proto];
  if (forwarded.host !== '') headers.push('x-forwarded-host', forwarded.host);
  headers.push('x-request-id', requestId);
  return headers;
}

/** The key and the tenant go as the options say under their own names, and under no variant of these. */
function isReplaced(lower: string, { sources, forwardKey, tenantHeader }: UpstreamHeaderOptions): boolean {
  if (sources.includes(lower)) return forwardKey.kind !== 'keep';
  for (const source of sources) if (readsAs(lower, source)) return true;
  if (forwardKey.kind === 'rename' && readsAs(lower, forwardKey.header)) return true;
  return isVariantOf(lower, tenantHeader);
}

export interface FramingFacts {
  readonly httpVersionMajor: number;
  readonly httpVersionMinor: number;
  readonly rawHeaders: readonly string[];
}

export interface FramingFault {
  readonly code: 'request_invalid' | 'not_supported';
  readonly detail: string;
  /** Where it is not that of the code. */
  readonly status?: number;
}

/** With those that we add, a dozen at most, under 1,000: a server on Node.js 22 or 24 refuses more, and older ones drop them. */
const maxFields = 980;

/** What Node lets through although two readers may see two different requests, or although we cannot carry it. */
export function framingFault(request: FramingFacts): FramingFault | null {
  const { rawHeaders, httpVersionMajor, httpVersionMinor } = request;
  if (httpVersionMajor !== 1 || httpVersionMinor > 1) {
    const detail = 'Only HTTP/1.0 and HTTP/1.1 are carried: send the request as one of them.';
    return { code: 'not_supported', detail, status: 505 };
  }
  if (rawHeaders.length > 2 * maxFields) {
    const detail = `The request has over ${maxFields} header fields, and some services read no more: send fewer.`;
    return { code: 'request_invalid', detail, status: 431 };
  }
  let hosts = 0;
  let hasLength = false;
  let isGrpc = false;
  let expects = false;
  let codings = '';
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    // Lengths first: most headers then cost no lower-casing.
    switch (name.length) {
      case 4:
        if (name.toLowerCase() === 'host') hosts++;
        break;
      case 6:
        if (name.toLowerCase() === 'expect') expects ||= !continues.test(rawHeaders[i + 1] as string);
        break;
      case 12:
        if (name.toLowerCase() === 'content-type') isGrpc ||= grpc.test(rawHeaders[i + 1] as string);
        break;
      case 14:
        if (name.toLowerCase() === 'content-length') hasLength = true;
        break;
      case 17:
        if (name.toLowerCase() === 'transfer-encoding') codings += `,${rawHeaders[i + 1]}`;
        break;
    }
  }
  if (hosts === 0 && httpVersionMinor === 1) {
    return fault('request_invalid', 'An HTTP/1.1 request names its Host: send that header.');
  }
  if (hosts > 1) return fault('request_invalid', 'The request has more than one Host header: send one.');
  if (codings !== '') {
    if (httpVersionMinor === 0) {
      return fault(
        'request_invalid',
        'HTTP/1.0 has no Transfer-Encoding: send Content-Length, or use HTTP/1.1.',
      );
    }
    if (hasLength) {
      return fault(
        'request_invalid',
        'Transfer-Encoding and Content-Length came together: send one of them.',
      );
    }
    if (codings.toLowerCase() !== ',chunked') {
      return fault(
        'not_supported',
        'No transfer coding but chunked is carried: send the body without others.',
      );
    }
  }
  // To HTTP/1.0 the header means nothing (RFC 9110, 10.1.1).
  if (expects && httpVersionMinor === 1) {
    const detail = 'No expectation but 100-continue is met: send the request without another Expect header.';
    return { code: 'not_supported', detail, status: 417 };
  }
  return isGrpc
    ? fault('not_supported', 'gRPC needs trailers, which are not carried: send it another way.')
    : null;
}

const continues = /^\s*100-continue\s*$/i;
/** gRPC-web is made for HTTP/1.1: its trailers come in the body. */
const grpc = /^\s*application\/grpc(?!-web\b)/i;

function fault(code: FramingFault['code'], detail: string): FramingFault {
  return { code, detail };
}

const suspect = /[%\\#\x80-\xff]|\/[./;]/;
const ambiguous = new RegExp(
  [
    // Most servers merge slashes, so that `//v1/charges` would run under another route's policy, in another scope.
    '//',
    // To those that take parameters off first, as Tomcat does, `/;x/` is one too.
    '/(?:;|%3b)[^/]*/',
    // A slash to some; and what follows # never reaches others.
    '[\\\\#]',
    // Broken escapes: servers differ in what they make of them.
    '%(?![0-9a-f]{2})',
    // Slash, backslash, controls, and the overlong UTF-8 spellings of ASCII in two bytes.
    '%(?:2f|5c|[01][0-9a-f]|7f|c[01])',
    // Dot segments; Tomcat also takes `..;x` for one. Other parameters are left alone.
    '/(?:\\.|%2e){1,2}(?:[/;]|%3b|$)',
  ].join('|'),
  'i',
);

/**
 * Overlong UTF-8 of two to six bytes, escaped or raw: lenient decoders read `%E0%80%AF` as a slash. Not by the flag i, to which
 * the raw bytes F0 and D0 are the same letter, and D0 begins most Cyrillic ones.
 */
const overlong = new RegExp(
  [
    '[\\xc0\\xc1](?:%[89abAB]|[\\x80-\\xbf])',
    '(?:%[eE]0|\\xe0)(?:%[89]|[\\x80-\\x9f])',
    '(?:%[fF]0|\\xf0)(?:%8|[\\x80-\\x8f])',
    '(?:%[fF]8|\\xf8)(?:%8[0-7]|[\\x80-\\x87])',
    '(?:%[fF][cC]|\\xfc)(?:%8[0-3]|[\\x80-\\x83])',
  ].join('|'),
);

/** Whether servers disagree about which resource this is: then neither scope nor route can be trusted. Without query. */
export function ambiguousPath(rawPath: string): boolean {
  if (!rawPath.startsWith('/')) return true;
  return suspect.test(rawPath) && (ambiguous.test(rawPath) || overlong.test(rawPath));
}
