import type { RecordId } from '../core/record.ts';
import { upstreamHeaders } from '../core/request.ts';
import { OncegateError } from '../errors.ts';
import { UpstreamFault } from '../upstream/failure.ts';
import type { Attempt } from './attempts.ts';
import { Capture, type Captured } from './capture.ts';
import type { ProxyDeps } from './deps.ts';
import type { Exchange } from './exchange.ts';

export interface Forwarding {
  readonly attempt: Attempt;
  readonly epoch: string;
  readonly key: string;
}

export interface Forwarded {
  readonly captured: Captured;
  readonly capture: Capture;
}

/**
 * For a policy with `dispatchMark`: writes the mark, after which the request may have been sent. null: go on. Else the mark could not
 * be written, and this is the result of an attempt that never started.
 */
async function markDispatch(deps: ProxyDeps, exchange: Exchange, what: Forwarding): Promise<Captured | null> {
  if (!exchange.policy.dispatchMark) return null;
  const { scope } = exchange.id as RecordId;
  const marked = await deps.store.markDispatchedIfHeld({ scope, key: what.key, attempt: what.attempt.id });
  if (marked.kind === 'marked') return null;
  const cause = marked.kind === 'unavailable' ? marked.cause : undefined;
  const error = new OncegateError('store_unavailable', 'it could not be marked as sent', { cause });
  return { kind: 'whole', ending: { kind: 'not_started', error }, head: null, body: Buffer.alloc(0) };
}

/** The one dispatch of an attempt. It is not tied to the client's socket: a client that leaves changes nothing. */
export async function forward(deps: ProxyDeps, exchange: Exchange, what: Forwarding): Promise<Forwarded> {
  const { req, policy } = exchange;
  const { upstream } = policy;
  const { attempt } = what;
  const capture = new Capture(policy.maxStoredBodyBytes, exchange);
  attempt.keep(capture.arriving);
  const unsent = await markDispatch(deps, exchange, what);
  if (unsent !== null) return { captured: unsent, capture };
  const call = deps.clientFor(upstream).dispatch(
    {
      method: exchange.method,
      path: req.url ?? '/',
      headers: headersFor(deps, exchange, what),
      body: exchange.body ?? Buffer.alloc(0),
      address: exchange.share.address,
      timeoutMs: upstream.timeoutMs,
      mayStart: () => {
        if (!deps.budget.hasRoom) throw new UpstreamFault('no_room', 'no memory is left for its answer');
        return !attempt.isOver && deps.lease.mayStart(attempt.instance);
      },
    },
    capture,
  );
  capture.attach(call);
  return { captured: await capture.captured, capture };
}

function headersFor(deps: ProxyDeps, exchange: Exchange, what: Forwarding): string[] {
  const { req, policy } = exchange;
  const clientHost = req.headers.host ?? '';
  const host =
    policy.upstream.host === 'preserve' && clientHost !== '' ? clientHost : hostOf(policy.upstream.origin);
  return upstreamHeaders(deps.memos, req.rawHeaders, {
    sources: deps.identity.keySources,
    forwardKey: policy.forwardKey,
    key: what.key,
    attempt: what.attempt.id,
    epoch: what.epoch,
    forwarded: { for: req.socket.remoteAddress ?? 'unknown', proto: 'http', host: clientHost },
    host,
    requestId: exchange.requestId,
    tenantHeader: deps.identity.tenantHeader,
  });
}

function hostOf(origin: string): string {
  return origin.slice(origin.indexOf('//') + 2);
}
