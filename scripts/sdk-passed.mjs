/**
 * What a request can get that is passed through. Tried without retries alone: with them an SDK sends it again and it runs again, which is
 * what not to guard means, and our answer says nothing against it.
 */
import { ambiguous, grpc, noGrpc } from './sdk-cases.mjs';
import { problem } from './sdk-problem.mjs';

const load = (path) => import(new URL(`../${path}`, import.meta.url).href);
const { PassThroughFault } = await load('src/proxy/pass-through-problem.ts');

/** Under a route with `mode: off`; refused there as a guarded one is. */
const asGuarded = (code, detail, call) =>
  problem(code, 0, call, { name: `passed: ${code}`, detail, retries: [0] });

/** In words that speak of no key. */
const passed = (code, runs, call, more) =>
  problem(code, runs, call, {
    name: `passed: ${code}`,
    detail: new PassThroughFault(code).message,
    isWhole: true,
    retries: [0],
    ...more,
  });

export const passedCases = [
  asGuarded('request_invalid', ambiguous, ({ ask, bench }) => ask({ url: `${bench.url}/off//b` })),
  asGuarded('not_supported', noGrpc, ({ ask, bench }) => ask({ url: `${bench.url}/off`, headers: grpc })),
  // Taken for a forward proxy: the target is a whole URL.
  passed(
    'request_invalid',
    0,
    ({ ask, bench }) => ask({ method: 'GET', url: 'http://charges.invalid', proxy: bench.url }),
    { name: 'passed: request_invalid (proxy)', needs: 'proxies' },
  ),
  passed('not_supported', 0, ({ ask, bench }) => ask({ method: 'TRACE', url: `${bench.url}/off` }), {
    name: 'passed: not_supported (TRACE)',
    needs: 'methods',
  }),
  passed('overloaded', 0, ({ ask, bench }) => ask({ url: `${bench.full}/off` })),
  passed('body_incomplete', 0, ({ ask, bench }) => ask({ url: `${bench.url}/off`, isStalled: true }), {
    needs: 'streams',
    isSlow: true,
  }),
  passed('upstream_unreachable', 0, ({ ask, bench }) => ask({ url: `${bench.nowhere}/off` })),
  passed('upstream_failed', 1, ({ ask, bench }) => ask({ url: `${bench.url}/off` }), { mark: 'cut-' }),
  passed('upstream_timeout', 1, ({ ask, bench }) => ask({ url: `${bench.url}/off` }), {
    mark: 'hold-',
    isSlow: true,
  }),
];
