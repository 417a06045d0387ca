/**
 * What a guarded request can get, and how an SDK is brought to get it; `answer_unsaved` is in sdk-unsaved.mjs. Left out, since no SDK
 * sends it: what only a parser sees (two `Host`s, `Transfer-Encoding` beside `Content-Length`, HTTP/2.0, CONNECT, an `Expect` of its own),
 * a body that ends early (nobody is there to read the answer), and `overloaded` of an instance that stops, which a call meets by chance.
 */
import { problem, tried } from './sdk-problem.mjs';

const { until } = await import(new URL('../test/helpers/until.ts', import.meta.url).href);

export const ambiguous =
  'Servers disagree about which resource this path names: send it without dot segments, empty segments and encoded slashes.';
export const grpc = { 'Content-Type': 'application/grpc' };
export const noGrpc = 'gRPC needs trailers, which are not carried: send it another way.';
const tooLong = 'The idempotency key is too long: send at most 255 bytes.';

/** `needs`: an SDK that can (sdk-check.mjs). `isSlow`: beside the others, for it waits for a limit of ours. */
export const guardedCases = [
  tried('success and retry', {
    runs: 1,
    texts: [],
    call: async ({ ask }) => {
      const first = await ask();
      return first.threw ? first : ask();
    },
  }),
  tried('answer lost, retried by itself', {
    runs: 1,
    texts: [],
    retries: [1],
    call: async ({ ask, bench, key }) => {
      let isLost = false;
      bench.lossy.onceServerSends(key, 'cut-before').fired.then(() => (isLost = true));
      const end = await ask({ url: bench.lossyUrl });
      return isLost ? end : { threw: true, said: `its answer was not lost: ${end.said}` };
    },
  }),
  problem('key_missing', 0, ({ ask }) => ask({ key: null }), { needs: 'noKey' }),
  problem('key_invalid', 0, ({ ask }) => ask({ key: 'k'.repeat(256) }), { detail: tooLong }),
  problem('tenant_missing', 0, ({ ask }) => ask({ tenant: null })),
  problem('request_invalid', 0, ({ ask, bench }) => ask({ url: `${bench.url}/a//b` }), { detail: ambiguous }),
  problem('request_invalid', 0, ({ ask }) => ask({ tenant: 'x'.repeat(20_000) }), {
    name: 'request_invalid (431)',
    detail: 'The headers are over 16 kB: send less.',
  }),
  problem('not_supported', 0, ({ ask }) => ask({ headers: grpc }), { detail: noGrpc }),
  problem('body_too_large', 0, ({ ask, key }) => ask({ note: key + 'x'.repeat(3_000) })),
  problem('overloaded', 0, ({ ask, bench }) => ask({ url: bench.full })),
  // Of a stream nothing can be sent again.
  problem('body_incomplete', 0, ({ ask }) => ask({ isStalled: true }), {
    needs: 'streams',
    isSlow: true,
    retries: [0],
  }),
  problem('store_unavailable', 0, ({ ask, bench }) => ask({ url: bench.storeless })),
  problem('key_reused', 1, async ({ ask }) => {
    await ask();
    return ask({ amount: 2 });
  }),
  problem('caller_differs', 1, async ({ ask }) => {
    await ask();
    return ask({ anonymous: true });
  }),
  problem(
    'response_not_retained',
    1,
    async ({ ask }) => {
      await ask();
      return ask();
    },
    { mark: 'large-' },
  ),
  problem(
    'in_progress',
    1,
    async ({ ask, bench, key }) => {
      const first = ask();
      await until('it runs', () => bench.ran(key) === 1);
      const end = await ask();
      bench.upstream.letGo(key);
      await first;
      return end;
    },
    { mark: 'hold-' },
  ),
  problem(
    'outcome_unknown',
    1,
    async ({ ask }) => {
      await ask();
      return ask();
    },
    { mark: 'cut-' },
  ),
  problem('upstream_unreachable', 0, ({ ask, bench }) => ask({ url: bench.nowhere })),
  problem('upstream_failed', 1, ({ ask }) => ask(), { mark: 'cut-' }),
  problem('upstream_timeout', 1, ({ ask }) => ask(), { mark: 'hold-', isSlow: true }),
];
