import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { UpstreamTarget } from '../core/policy.ts';
import { connectionNames, hopByHop, ourPrefix } from '../core/response.ts';

/** About the client's own connection, or set by us below. The rest goes on as it came, in its order and spelling. */
const notForUpstream = new Set([
  ...hopByHop,
  // Belongs to `Upgrade: h2c`, which we do not speak.
  'http2-settings',
  // Node has answered 100 already; undici would refuse the request.
  'expect',
  'host',
  'x-request-id',
]);

/** A flat list, as undici takes it. */
export function headersForUpstream(
  req: IncomingMessage,
  target: UpstreamTarget,
  requestId: string,
): string[] {
  const { rawHeaders } = req;
  const host = req.headers.host ?? '';
  const named = req.headers.connection === undefined ? [] : connectionNames(rawHeaders);
  // Without one undici takes the upstream's own.
  const headers = target.host === 'preserve' && host !== '' ? ['host', host] : [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    const lower = name.toLowerCase();
    if (isOurs(lower) || named.includes(lower)) continue;
    // CGI-like upstreams read `X_Forwarded_For` as `X-Forwarded-For`.
    if (lower.includes('_') && isOurs(lower.replaceAll('_', '-'))) continue;
    headers.push(name, rawHeaders[i + 1] as string);
  }
  headers.push(
    'x-forwarded-for',
    req.socket.remoteAddress ?? 'unknown',
    'x-forwarded-proto',
    'http',
    'x-request-id',
    requestId,
  );
  if (host !== '') headers.push('x-forwarded-host', host);
  return headers;
}

function isOurs(lower: string): boolean {
  return notForUpstream.has(lower) || lower.startsWith('x-forwarded-') || lower.startsWith(ourPrefix);
}

const notForClients = new Set([...hopByHop, 'x-request-id']);

export type AnswerHeaders = Record<string, string | string[]>;

/** Takes undici's object: lower-case names, a list where a field came more than once. */
export function headersForClient(headers: IncomingHttpHeaders, requestId: string): AnswerHeaders {
  const named =
    headers.connection === undefined ? [] : connectionNames(['connection', `${headers.connection}`]);
  const kept: AnswerHeaders = {};
  for (const name in headers) {
    if (notForClients.has(name) || name.startsWith(ourPrefix) || named.includes(name)) continue;
    kept[name] = headers[name] as string | string[];
  }
  kept['x-request-id'] = requestId;
  return kept;
}
