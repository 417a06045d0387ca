import { hasCredentials } from '../core/credentials.ts';
import { fingerprintOf } from '../core/fingerprint.ts';
import { connectionNames } from '../core/response.ts';
import { scopeAt } from '../core/scope.ts';
import type { ProxyDeps } from './deps.ts';
import type { Exchange } from './exchange.ts';
import type { Claim } from './reserve.ts';

/** null: one tenant for all; undefined: the tenant is needed and was not named, or not clearly. */
export function tenantOf(deps: ProxyDeps, exchange: Exchange): string | null | undefined {
  const { tenantHeader } = deps.identity;
  if (tenantHeader === null) return null;
  const { headersDistinct, rawHeaders } = exchange.req;
  const values = headersDistinct[tenantHeader];
  // Sent twice, the upstream may read the other one; named by Connection, it would not get there at all.
  if (values?.length !== 1 || connectionNames(deps.memos, rawHeaders).has(tenantHeader)) return undefined;
  return values[0] === '' ? undefined : values[0];
}

export function claimOf(
  deps: ProxyDeps,
  exchange: Exchange,
  { key, tenant, body }: { key: string; tenant: string | null; body: Buffer },
): Claim {
  const { method, path, query, req, policy } = exchange;
  const { identity, memos } = deps;
  const scope = scopeAt(memos, { tenant, method, path }, identity.scopeParts);
  const fingerprint = fingerprintOf(
    memos,
    { method, path, query, rawHeaders: req.rawHeaders, body },
    policy.fingerprint,
  );
  return { scope, key, fingerprint, hasCredentials: hasCredentials(memos, req.rawHeaders), tenant };
}
