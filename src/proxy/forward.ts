import { upstreamHeaders } from '../core/request.ts';
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

/** The one dispatch of an attempt. It is not tied to the client's socket: a client that leaves changes nothing. */
export async function forward(deps: ProxyDeps, exchange: Exchange, what: Forwarding): Promise<Forwarded> {
  const { req, policy } = exchange;
  const { upstream } = policy;
  const { attempt } = what;
  const capture = new Capture(policy.maxStoredBodyBytes);
  const call = deps.clientFor(upstream).dispatch(
    {
      method: exchange.method,
      path: req.url ?? '/',
      headers: headersFor(deps, exchange, what),
      body: exchange.body ?? Buffer.alloc(0),
      timeoutMs: upstream.timeoutMs,
      mayStart: () => !attempt.isOver && deps.lease.mayStart(attempt.instance),
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
  return upstreamHeaders(req.rawHeaders, {
    sources: deps.identity.keySources,
    forwardKey: policy.forwardKey,
    key: what.key,
    attempt: what.attempt.id,
    epoch: what.epoch,
    forwarded: { for: req.socket.remoteAddress ?? 'unknown', proto: 'http', host: clientHost },
    host,
    requestId: exchange.requestId,
    ...(deps.identity.tenantHeader === null ? {} : { tenantHeader: deps.identity.tenantHeader }),
  });
}

function hostOf(origin: string): string {
  return origin.slice(origin.indexOf('//') + 2);
}
