import { findKey } from '../core/key.ts';
import type { ProblemCode } from '../core/problem.ts';
import { asError } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { readBody } from './body.ts';
import { complete, giveUp } from './complete.ts';
import type { ProxyDeps } from './deps.ts';
import type { Exchange } from './exchange.ts';
import { forward } from './forward.ts';
import { claimOf, tenantOf } from './identify.ts';
import { replay } from './replay.ts';
import { type Reply, send } from './reply.ts';
import { type Claim, type Claimed, claim } from './reserve.ts';
import { endsWithLastByte, noteIfBroken, settleAtEnd } from './settle-at-end.ts';
import { waitFor } from './wait.ts';

/** The story of a guarded request, from top to bottom. Never rejects. */
export async function handle(deps: ProxyDeps, exchange: Exchange): Promise<void> {
  try {
    await send(exchange, await answer(deps, exchange));
    failpoint('answer_sent');
  } catch (error) {
    // A fault of ours. Nothing may be claimed about the request: the client's connection is cut.
    exchange.error = asError(error);
    exchange.res.destroy();
  }
  if (exchange.settling !== null) await exchange.settling;
  exchange.done();
}

async function answer(deps: ProxyDeps, exchange: Exchange): Promise<Reply> {
  const { req, policy } = exchange;
  const { keySources, keyLimits } = deps.identity;

  const found = findKey(req.rawHeaders, keySources, keyLimits);
  if (found.kind === 'none') return refuse(exchange, 'key_missing');
  if (found.kind === 'invalid') return refuse(exchange, 'key_invalid', found.detail);

  const tenant = tenantOf(deps, exchange);
  if (tenant === undefined) return refuse(exchange, 'tenant_missing');

  const read = await readBody(req, policy.maxRequestBodyBytes, exchange);
  if (read.kind === 'too_large') return refuse(exchange, 'body_too_large');
  if (read.kind === 'overloaded') return refuse(exchange, 'overloaded');
  if (read.kind === 'incomplete') return refuse(exchange, 'body_incomplete');
  exchange.body = read.body;
  failpoint('body_complete');

  const wanted = claimOf(deps, exchange, { key: found.key, tenant, body: read.body });
  exchange.id = wanted;
  // Not awaited: this frame would keep the body in memory, also of those that only wait.
  return decideAndRun(deps, exchange, wanted);
}

async function decideAndRun(deps: ProxyDeps, exchange: Exchange, wanted: Claim): Promise<Reply> {
  const askedMs = performance.now();
  const claimed = await claim(deps, exchange, wanted);
  exchange.reserveMs = performance.now() - askedMs;
  switch (claimed.kind) {
    case 'own':
      exchange.verdict = claimed.takenOver ? 'take_over' : 'execute';
      return await run(deps, exchange, wanted, claimed);
    case 'replay':
      exchange.verdict = 'replay';
      return replay(deps.memos, claimed, exchange.policy);
    case 'refuse':
      return refuse(exchange, claimed.code);
    case 'in_progress': {
      // Whoever waits keeps no body.
      exchange.letGo();
      const reply = await waitFor(deps, exchange, wanted, claimed.attempt);
      exchange.verdict = reply.kind === 'problem' ? reply.code : 'wait';
      return reply;
    }
    case 'gone':
      return { kind: 'gone' };
  }
}

async function run(
  deps: ProxyDeps,
  exchange: Exchange,
  wanted: Claim,
  { attempt, epoch }: Extract<Claimed, { kind: 'own' }>,
): Promise<Reply> {
  try {
    const sentMs = performance.now();
    const forwarded = await forward(deps, exchange, { attempt, epoch, key: wanted.key });
    const answeredMs = performance.now();
    // It is not sent again: its body need not be kept while its answer is settled and taken.
    exchange.letGo();
    exchange.forwardMs = answeredMs - sentMs;
    if (endsWithLastByte(exchange, forwarded)) {
      exchange.settling = settleAtEnd(deps, exchange, { wanted, attempt, forwarded });
      const { capture } = forwarded;
      const headers = capture.clientHeaders(deps.memos);
      return { kind: 'stream', capture, headers, idempotency: 'in_progress', retainUntilMs: null };
    }
    const { first, others } = await complete(deps, exchange, { wanted, attempt, forwarded });
    exchange.completeMs = performance.now() - answeredMs;
    attempt.conclude(others);
    if (first.kind === 'stream')
      exchange.settling = noteIfBroken(deps, exchange, { wanted, attempt, forwarded });
    return first;
  } catch (error) {
    // A fault of ours with the key in hand: nobody may guess how far it came.
    exchange.error = asError(error);
    return await giveUp(deps, exchange, wanted, attempt);
  }
}

function refuse(exchange: Exchange, code: ProblemCode, detail?: string): Reply {
  exchange.verdict = code;
  return detail === undefined ? { kind: 'problem', code } : { kind: 'problem', code, detail };
}
