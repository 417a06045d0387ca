import t from 'tap';
import { type Dialect, problemCodes, problemReply } from '../../src/core/problem.ts';

const dialects: readonly Dialect[] = ['ietf', 'stripe'];
const requestId = 'req-1';

/** PRODUCT.md, "What a guarded request gets". */
const statuses: Record<string, number> = {
  key_missing: 400,
  key_invalid: 400,
  tenant_missing: 401,
  request_invalid: 400,
  not_supported: 501,
  body_too_large: 413,
  overloaded: 503,
  body_incomplete: 400,
  store_unavailable: 503,
  key_reused: 422,
  caller_differs: 401,
  response_not_retained: 409,
  in_progress: 409,
  outcome_unknown: 409,
  upstream_unreachable: 502,
  upstream_timeout: 504,
  upstream_failed: 502,
  answer_unsaved: 503,
};

/** Those that Stripe's SDKs know. */
const stripeType = /^(idempotency_error|api_error|invalid_request_error)$/;

const retryable = [
  'overloaded',
  'body_incomplete',
  'store_unavailable',
  'in_progress',
  'upstream_unreachable',
  'answer_unsaved',
];

t.test('every code is looked at here', async (t) => {
  t.strictSame([...problemCodes].sort(), Object.keys(statuses).sort());
});

for (const code of problemCodes) {
  t.test(code, (t) => {
    const ietf = problemReply(code, { dialect: 'ietf', requestId });
    t.equal(ietf.status, statuses[code]);
    t.equal(ietf.contentType, 'application/problem+json');
    t.match(JSON.parse(ietf.body), {
      type: `urn:oncegate:problem:${code}`,
      title: /^[A-Z].+/,
      status: statuses[code],
      detail: /\.$/,
      code,
      retryable: retryable.includes(code),
      requestId,
    });
    const { detail, message, error } = JSON.parse(ietf.body);
    t.equal(message, detail);
    t.strictSame(Object.keys(error), ['type', 'code', 'message']);
    t.match(error, { type: stripeType, code, message: detail });
    t.match(detail, /key/, 'what to do with the key');

    const stripe = problemReply(code, { dialect: 'stripe', requestId });
    const status = code === 'key_reused' ? 400 : statuses[code];
    t.equal(stripe.status, status);
    t.equal(stripe.contentType, 'application/json');
    t.match(JSON.parse(stripe.body), {
      error: {
        type: stripeType,
        code: code === 'in_progress' ? 'idempotency_key_in_use' : code,
        message: detail,
        request_id: requestId,
      },
      message: detail,
    });
    t.equal(new Map(stripe.headers).get('Request-Id'), requestId);
    t.equal(new Map(ietf.headers).get('Request-Id'), undefined);

    for (const dialect of dialects) {
      const reply = problemReply(code, { dialect, requestId });
      t.notMatch(reply.body, /undefined|null|NaN/, dialect);
      const headers = new Map(reply.headers);
      t.equal(headers.size, reply.headers.length, 'no header twice');
      const shouldRetry = retryable.includes(code) ? undefined : 'false';
      t.equal(headers.get('Stripe-Should-Retry'), shouldRetry);
      t.equal(headers.get('X-Should-Retry'), shouldRetry);
    }
    t.end();
  });
}

t.test('Retry-After where waiting helps, and only there', (t) => {
  const waits = new Map(
    problemCodes.flatMap((code) => {
      const header = problemReply(code, { dialect: 'ietf', requestId }).headers.find(
        ([name]) => name === 'Retry-After',
      );
      return header === undefined ? [] : [[code, header[1]]];
    }),
  );
  t.strictSame([...waits.keys()].sort(), [
    'answer_unsaved',
    'in_progress',
    'overloaded',
    'store_unavailable',
    'upstream_unreachable',
  ]);
  for (const [code, seconds] of waits) t.match(seconds, /^[1-9]\d*$/, code);
  t.end();
});

t.test('Stripe types', (t) => {
  const typeOf = (code: (typeof problemCodes)[number]) =>
    JSON.parse(problemReply(code, { dialect: 'stripe', requestId }).body).error.type;
  t.equal(typeOf('key_reused'), 'idempotency_error');
  t.equal(typeOf('in_progress'), 'idempotency_error');
  t.equal(typeOf('store_unavailable'), 'api_error');
  t.equal(typeOf('upstream_failed'), 'api_error');
  t.equal(typeOf('key_missing'), 'invalid_request_error');
  const plain = problemReply('upstream_failed', { dialect: 'stripe', requestId, status: 500 });
  t.equal(JSON.parse(plain.body).error.type, 'api_error', 'from 500 on');
  t.end();
});

t.test('detail and status can be given', (t) => {
  for (const dialect of dialects) {
    const reply = problemReply('in_progress', { dialect, requestId, detail: 'Wait for it.', status: 202 });
    t.equal(reply.status, 202, dialect);
    t.match(reply.body, /"Wait for it\."/, dialect);
    const late = problemReply('body_incomplete', { dialect, requestId, detail: 'Too late.' });
    t.match(late.body, /"Too late\. Nothing was forwarded: [^"]*same key\."/, 'and what always follows');
    const whole = problemReply('body_incomplete', { dialect, requestId, detail: 'Late.', isWhole: true });
    t.match(whole.body, /"message":"Late\."/, 'unless it is the whole text');
  }
  const ietf = problemReply('in_progress', { dialect: 'ietf', requestId, status: 202 });
  t.equal(JSON.parse(ietf.body).status, 202, 'the body says the same status');
  const reused = problemReply('key_reused', { dialect: 'stripe', requestId, status: 418 });
  t.equal(reused.status, 400, 'Stripe has one status for it');
  t.end();
});
