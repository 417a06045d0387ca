import type { Test } from 'tap';
import type { Answer, Ask } from '../helpers/client.ts';
import { send } from '../helpers/client.ts';
import { recordOf } from '../helpers/records.ts';
import type { Sidecar } from '../helpers/sidecar.ts';
import { type Steering, type TestUpstream } from '../helpers/upstream.ts';

export type Dialect = 'ietf' | 'stripe';

interface Expected {
  readonly status: number;
  /** Where Stripe's own differ. */
  readonly stripe?: { readonly status?: number; readonly code?: string; readonly type?: string };
  readonly retryable: boolean;
  readonly retryAfter?: string;
  readonly idempotency?: string;
}

/** What each problem is outside, by code: PRODUCT.md's table, not the code's. */
const problems: Readonly<Record<string, Expected>> = {
  key_missing: { status: 400, retryable: false },
  key_invalid: { status: 400, retryable: false },
  tenant_missing: { status: 401, retryable: false },
  store_unavailable: { status: 503, retryable: true, retryAfter: '1' },
  body_too_large: { status: 413, retryable: false },
  key_reused: { status: 422, stripe: { status: 400, type: 'idempotency_error' }, retryable: false },
  caller_differs: { status: 401, retryable: false },
  response_not_retained: { status: 409, retryable: false, idempotency: 'executed' },
  in_progress: {
    status: 409,
    stripe: { code: 'idempotency_key_in_use', type: 'idempotency_error' },
    retryable: true,
    retryAfter: '1',
    idempotency: 'in_progress',
  },
  outcome_unknown: { status: 409, retryable: false, idempotency: 'unknown' },
  upstream_unreachable: { status: 502, retryable: true, retryAfter: '1', idempotency: 'released' },
  upstream_timeout: { status: 504, retryable: false, idempotency: 'unknown' },
  upstream_failed: { status: 502, retryable: false, idempotency: 'unknown' },
};

/** A sidecar, its upstream, and the dialect in which its problems must come. */
export class Guarded {
  readonly dialect: Dialect;
  readonly upstream: TestUpstream;
  readonly sidecar: Sidecar;

  constructor(dialect: Dialect, upstream: TestUpstream, running: Sidecar) {
    this.dialect = dialect;
    this.upstream = upstream;
    this.sidecar = running;
  }

  send(
    key: string,
    options: Ask & { readonly steer?: Steering; readonly path?: string } = {},
  ): Promise<Answer> {
    const { path, ...rest } = options;
    const headers = { 'X-Tenant': 'acme', ...rest.headers };
    return send(`${this.sidecar.dataUrl}${path ?? '/a'}`, key, { ...rest, headers });
  }

  /** Held by the upstream when this resolves. */
  async sendAndHold(key: string, options: { path?: string } = {}): Promise<{ answer: Promise<Answer> }> {
    const before = this.upstream.executions.length;
    const answer = this.send(key, { ...options, steer: { hold: true } });
    await this.upstream.received(before + 1);
    return { answer };
  }

  record(key: string) {
    return recordOf(this.sidecar.databaseUrl, key);
  }

  isProblem(t: Test, answer: Answer, code: string, status?: number): void {
    const expected = problems[code] as Expected;
    const body = JSON.parse(answer.body.toString()) as Record<string, unknown>;
    const requestId = answer.headers['x-request-id'];
    const wanted = status ?? expected.status;
    const stripeType = expected.stripe?.type ?? (wanted >= 500 ? 'api_error' : 'invalid_request_error');
    if (this.dialect === 'ietf') {
      t.equal(answer.status, wanted, `${code}: ${answer.status}`);
      t.equal(answer.headers['content-type'], 'application/problem+json');
      const { status, retryable, type } = body;
      t.same(
        { code: body['code'], status, retryable, type, requestId: body['requestId'] },
        {
          code,
          status: wanted,
          retryable: expected.retryable,
          type: `urn:oncegate:problem:${code}`,
          requestId,
        },
      );
      t.type(body['title'], 'string');
      t.type(body['detail'], 'string');
      // The members that SDKs read.
      const message = body['detail'];
      t.same([body['message'], body['error']], [message, { type: stripeType, code, message }]);
      t.equal(answer.headers['request-id'], undefined);
    } else {
      const { stripe } = expected;
      t.equal(answer.status, stripe?.status ?? wanted, `${code}: ${answer.status}`);
      t.equal(answer.headers['content-type'], 'application/json');
      t.match(body, {
        error: { type: stripeType, code: stripe?.code ?? code, message: String, request_id: requestId },
      });
      t.equal(body['message'], (body['error'] as { message: string }).message);
      t.equal(answer.headers['request-id'], requestId);
    }
    t.equal(answer.headers['retry-after'], expected.retryAfter);
    t.equal(answer.headers['stripe-should-retry'], expected.retryable ? undefined : 'false');
    t.equal(answer.headers['x-should-retry'], expected.retryable ? undefined : 'false');
    t.equal(answer.headers['idempotency-status'], expected.idempotency);
    t.equal(answer.headers['idempotent-replayed'], undefined);
    t.equal(answer.headers['cache-control'], 'no-store');
  }
}
