import { formatKey } from './key.ts';
import type { ForwardKey } from './policy.ts';
import { Remembered } from './remembered.ts';
import { connectionNames, hopByHop, ourPrefix } from './response.ts';

/** What is sent upstream of a client's request, and what is too malformed to be sent at all. */

export interface UpstreamHeaderOptions {
  /** Lower-case names of the headers that may carry the key. */
  readonly sources: readonly string[];
  readonly forwardKey: ForwardKey;
  readonly key: string;
  readonly attempt: string;
  readonly epoch: string;
  readonly forwarded: { readonly for: string; readonly proto: string; readonly host: string };
  readonly host: string;
  readonly requestId: string;
  /** Lower-case name of the header that names the tenant: its twins with `_` are dropped. */
  readonly tenantHeader: string | null;
}

/** Never taken from the client: about its own connection, framed again by undici, or set by us below. */
const notForUpstream = new Set([
  ...hopByHop,
  'content-length',
  'expect',
  'host',
  // A compressed answer would differ between clients, and so between first answer and replay.
  'accept-encoding',
  'x-request-id',
  // Says what X-Forwarded-* say, in the standard's words; we set only the latter.
  'forwarded',
]);

/** A flat list, as undici takes it. */
export function upstreamHeaders(rawHeaders: readonly string[], options: UpstreamHeaderOptions): string[] {
  const { forwardKey, forwarded } = options;
  const renamed = forwardKey.kind === 'rename' ? forwardKey.header.toLowerCase() : '';
  const named = connectionNames(rawHeaders);
  const headers = ['host', options.host];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    const { lower, isOurs, folded } = spellingOf(name);
    if (isOurs || lower === renamed || (named.length > 0 && named.includes(lower))) continue;
    if (options.sources.includes(lower)) {
      if (forwardKey.kind !== 'keep') continue;
    } else if (folded !== null && isTwin(folded, renamed, options)) {
      continue;
    }
    headers.push(name, rawHeaders[i + 1] as string);
  }
  if (forwardKey.kind === 'rename') headers.push(forwardKey.header, formatKey(options.key));
  headers.push(
    'accept-encoding',
    'identity',
    'x-forwarded-for',
    forwarded.for,
    'x-forwarded-proto',
    forwarded.proto,
    'x-forwarded-host',
    forwarded.host,
    'x-request-id',
    options.requestId,
    'oncegate-attempt',
    options.attempt,
    'oncegate-epoch',
    options.epoch,
  );
  return headers;
}

interface Spelling {
  readonly lower: string;
  readonly isOurs: boolean;
  /** How CGI-like upstreams read it; null: it has no `_`. */
  readonly folded: string | null;
}

/** By the name as it is spelled. */
const spellings = new Remembered<Spelling>(1_000, 64);

function spellingOf(name: string): Spelling {
  const known = spellings.get(name);
  if (known !== undefined) return known;
  const lower = name.toLowerCase();
  const folded = lower.includes('_') ? lower.replaceAll('_', '-') : null;
  const spelling = { lower, isOurs: isOurs(lower), folded };
  spellings.keep(name, spelling);
  return spelling;
}

function isOurs(lower: string): boolean {
  return notForUpstream.has(lower) || lower.startsWith(ourPrefix) || lower.startsWith('x-forwarded-');
}

/**
 * CGI-like upstreams read `Idempotency_Key` as `Idempotency-Key`: such a twin could stand in for what we checked, set,
 * or took into the fingerprint. Other names with `_` are the client's own business.
 */
function isTwin(folded: string, renamed: string, options: UpstreamHeaderOptions): boolean {
  return (
    isOurs(folded) ||
    folded === renamed ||
    folded === options.tenantHeader ||
    folded.startsWith('if-') ||
    folded.startsWith('content-') ||
    options.sources.includes(folded)
  );
}

export interface FramingFacts {
  readonly httpVersionMajor: number;
  readonly httpVersionMinor: number;
  readonly rawHeaders: readonly string[];
}

export interface FramingFault {
  readonly code: 'request_invalid' | 'not_supported';
  readonly detail: string;
}

/** What Node lets through although two readers may see two different requests, or although we cannot carry it. */
export function framingFault(request: FramingFacts): FramingFault | null {
  const { rawHeaders } = request;
  let hosts = 0;
  let hasLength = false;
  let isGrpc = false;
  let codings = '';
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    // Lengths first: most headers then cost no lower-casing.
    switch (name.length) {
      case 4:
        if (name.toLowerCase() === 'host') hosts++;
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
  if (hosts > 1) return fault('request_invalid', 'The request has more than one Host header: send one.');
  if (codings !== '') {
    if (request.httpVersionMajor === 1 && request.httpVersionMinor === 0) {
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
  return isGrpc
    ? fault('not_supported', 'gRPC needs trailers, which are not carried: send it another way.')
    : null;
}

const grpc = /^\s*application\/grpc/i;

function fault(code: FramingFault['code'], detail: string): FramingFault {
  return { code, detail };
}

const suspect = /[%\\#]|\/[./]/;
const ambiguous = new RegExp(
  [
    // Most servers merge slashes, so that `//v1/charges` would run under another route's policy, in another scope.
    '//',
    // A slash to some; and what follows # never reaches others.
    '[\\\\#]',
    // Broken escapes: servers differ in what they make of them.
    '%(?![0-9a-f]{2})',
    // Slash, backslash, controls, and the overlong UTF-8 spellings of ASCII.
    '%(?:2f|5c|[01][0-9a-f]|7f|c[01])',
    // Dot segments; Tomcat also takes `..;x` for one. Other parameters are left alone.
    '/(?:\\.|%2e){1,2}(?:[/;]|$)',
  ].join('|'),
  'i',
);

/** Whether servers disagree about which resource this is: then neither scope nor route can be trusted. Without query. */
export function ambiguousPath(rawPath: string): boolean {
  if (!rawPath.startsWith('/')) return true;
  return suspect.test(rawPath) && ambiguous.test(rawPath);
}
