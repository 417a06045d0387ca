import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { foldName, isVariantOf, readsAs } from '../core/fold-name.ts';
import { headerName } from '../core/header-name.ts';
import type { Memos } from '../core/memos.ts';
import type { UpstreamTarget } from '../core/policy.ts';
import { forwardedHeaders } from '../core/request.ts';
import { connectionNames, hopByHop, ourPrefix } from '../core/response.ts';

export interface UpstreamHeaderFacts {
  readonly memos: Memos;
  readonly target: UpstreamTarget;
  readonly requestId: string;
  /** Lower-case name of the header that names the tenant: its variants are dropped. */
  readonly tenantHeader: string | null;
}

/** A flat list, as undici takes it. */
export function headersForUpstream(facts: UpstreamHeaderFacts, req: IncomingMessage): string[] {
  const { memos, target, requestId, tenantHeader } = facts;
  const { rawHeaders } = req;
  const host = req.headers.host ?? '';
  const named = connectionNames(memos, rawHeaders);
  // Without one undici takes the upstream's own.
  const headers = target.host === 'preserve' && host !== '' ? ['host', host] : [];
  const forwarded = { for: req.socket.remoteAddress ?? 'unknown', proto: 'http', host };
  headers.push(...forwardedHeaders(forwarded, requestId));
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    const { lower, isOurs } = headerName(memos, name);
    if (isOurs || named.has(lower) || isVariantOf(lower, tenantHeader)) continue;
    headers.push(name, rawHeaders[i + 1] as string);
  }
  return headers;
}

const notForClients = new Set(hopByHop);

export type AnswerHeaders = Record<string, string | string[]>;

/** Takes undici's object: lower-case names, a list where a field came more than once. */
export function headersForClient(
  memos: Memos,
  headers: IncomingHttpHeaders,
  requestId: string,
): AnswerHeaders {
  const { connection } = headers;
  const named = connectionNames(memos, connection === undefined ? [] : ['connection', `${connection}`]);
  const kept: AnswerHeaders = {};
  for (const name in headers) {
    if (notForClients.has(name) || isOursToSay(name) || named.has(name)) continue;
    kept[name] = headers[name] as string | string[];
  }
  kept['x-request-id'] = requestId;
  if (kept['access-control-allow-origin'] !== undefined) expose(kept, 'X-Request-Id');
  return kept;
}

/** A page of another origin sees only the headers that are listed. */
function expose(headers: AnswerHeaders, ours: string): void {
  const listed = headers['access-control-expose-headers'] ?? [];
  headers['access-control-expose-headers'] = [...(Array.isArray(listed) ? listed : [listed]), ours].join(
    ', ',
  );
}

function isOursToSay(name: string): boolean {
  return (
    readsAs(name, 'x-request-id') || (name.startsWith('oncegate') && foldName(name).startsWith(ourPrefix))
  );
}
