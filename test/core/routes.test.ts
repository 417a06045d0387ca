import fc from 'fast-check';
import t from 'tap';
import type { Policy } from '../../src/core/policy.ts';
import {
  isShadowed,
  normalPath,
  parsePattern,
  patternFault,
  patternId,
  templateSegment,
} from '../../src/core/route-pattern.ts';
import { compileRoutes, isGuarded } from '../../src/core/routes.ts';

function policy(route: string, over: Partial<Policy> = {}): Policy {
  return {
    route,
    mode: 'enforce',
    methods: ['POST', 'PATCH'],
    requireKey: true,
    fingerprint: { body: 'canonical', ignore: [], headers: [] },
    inFlight: { waitMs: 0, answer: 409 },
    cors: { origins: [] },
    outcomes: { preset: 'standard', overrides: {} },
    retentionMs: 1,
    maxRequestBodyBytes: 1,
    maxStoredBodyBytes: 1,
    replayStatus: 'original',
    forwardKey: { kind: 'keep' },
    dispatchMark: false,
    dialect: 'ietf',
    upstream: { origin: 'http://u', timeoutMs: 1, connections: 1, host: 'preserve' },
    ...over,
  };
}

const defaults = policy('default');
const compiled = (patterns: readonly string[]) =>
  compileRoutes(
    defaults,
    patterns.map((pattern) => policy(pattern)),
  );

const routeOf = (patterns: readonly string[], path: string): string =>
  compiled(patterns).policyFor('POST', path).route;

t.test('one pattern', async (t) => {
  const rows: [pattern: string, path: string, matches: boolean][] = [
    ['/v1/charges', '/v1/charges', true],
    ['/v1/charges', '/v1/charges/', true],
    ['/v1/charges', '/v1/charges/1', false],
    ['/v1/charges', '/v1/Charges', false],
    ['/v1/charges', '/v1/%63harges', true],
    ['/v1/charges', '/v1/c%68arge%73', true],
    ['/v1/%63harges', '/v1/charges', true],
    ['/v1/charges', '/x/../v1/./charges', true],
    ['/v1/charges', '/x/%2E%2e/v1/charges', true],
    ['/v1/charges', '/v1/%2563harges', false],
    ['/v1/charges', '/v1%2Fcharges', false],
    ['/v1/charges', '/v1/charges;', true],
    ['/v1/charges', '/v1/charges;x=1', true],
    ['/v1/charges', '/v1;a=1;b/charges;x=1', true],
    ['/v1/charges', '/v1/charges%3Bx=1', true],
    ['/v1/charges', '/v1/charges%3bx=1', true],
    ['/v1/charges', '/v1/;charges', false],
    ['/v1/charges', '/v1/charges;x/1', false],
    ['/caf%c3%a9', '/caf%C3%A9', true],
    ['/caf%C3%A9', '/caf%c3%a9', true],
    ['/caf%C3%A9', '/caf\xc3\xa9', true],
    ['/v1/payments:capture', '/v1/payments%3Acapture', true],
    ['/v1/payments%3acapture', '/v1/payments:capture', true],
    ['/v1/{id}', '/v1/%7Bid%7d', true],
    ["/v1/@me!(a)'b", '/v1/%40me%21%28a%29%27b', true],
    ['/v1/payments:capture', '/v1/payments%253Acapture', false],
    ['/v1/%2A', '/v1/x', false],
    ['/v1/%2a', '/v1/%2A', true],
    ['/', '/', true],
    ['/', '/x', false],
    ['/v1/*/refund', '/v1/ch_1/refund', true],
    ['/v1/*/refund', '/v1/ch_1/refund/', true],
    ['/v1/*/refund', '/v1/ch_1/refunds', false],
    ['/v1/*/refund', '/v1/ch_1', false],
    ['/v1/*/refund', '/v1/ch_1/refund/x', false],
    ['/v1/*/refund', '/v1/a/b/refund', false],
    ['/v1/*/refund', '/v1//refund', false],
    ['/*/refund', '/', false],
    ['/orders/*', '/orders/1', true],
    ['/orders/*', '/orders/1/lines/2', true],
    ['/orders/*', '/orders', true],
    ['/orders/*', '/orders/', true],
    ['/orders/*', '/ordersx', false],
    ['/orders/*', '/order', false],
    ['/*', '/', true],
    ['/*', '/a/b', true],
    ['/*', '*', false],
    ['/*', 'http://host/a', false],
  ];
  for (const [pattern, path, matches] of rows) {
    t.equal(routeOf([pattern], path), matches ? pattern : 'default', `${pattern} ${path}`);
  }
});

t.test('the most specific pattern wins, in whatever order they are listed', async (t) => {
  const rows: [path: string, wins: string, loses: string][] = [
    ['/v1/charges', '/v1/charges', '/v1/*'],
    ['/v1/charges', '/v1/charges', '/v1/charges/*'],
    ['/v1/a/refund', '/v1/*/refund', '/v1/*'],
    ['/v1/a/refund', '/v1/*/refund', '/v1/a/*'],
    ['/v1/a/b', '/v1/a/*', '/v1/*'],
    ['/v1/a/b', '/v1/*/b', '/*/a/*'],
    ['/v1/a', '/v1/*', '/*'],
    ['/v1/*', '/v1/*/*', '/v1/*'],
    ['/a/x/c', '/a/*/c', '/a/*/c/*'],
    ['/a/b/c', '/a/*/c', '/*/b/c'],
    ['/a/b/c/d', '/a/b/*/d', '/a/*/c/d'],
  ];
  for (const [path, wins, loses] of rows) {
    t.equal(routeOf([wins, loses], path), wins, `${path}: ${wins} before ${loses}`);
    t.equal(routeOf([loses, wins], path), wins, `${path}: ${loses} before ${wins}`);
  }
});

t.test('the path picks the route, then the method decides', async (t) => {
  const charges = policy('/v1/charges', { methods: ['POST'] });
  const patch = policy('/v1/charges', { methods: ['PATCH'], retentionMs: 2 });
  const wide = policy('/v1/*', { methods: ['POST', 'PUT'] });
  const off = policy('/hooks/*', { mode: 'off' });
  const policies = compileRoutes(defaults, [wide, charges, patch, off]);
  t.equal(policies.policyFor('POST', '/v1/charges'), charges);
  t.equal(policies.policyFor('PATCH', '/v1/charges'), patch);
  t.equal(policies.policyFor('PUT', '/v1/charges'), charges, 'no fall back to the wider route');
  t.notOk(isGuarded(policies.policyFor('PUT', '/v1/charges'), 'PUT'));
  t.ok(isGuarded(policies.policyFor('PUT', '/v1/x'), 'PUT'));
  t.notOk(isGuarded(policies.policyFor('POST', '/hooks/a'), 'POST'));
  t.notOk(isGuarded(policies.policyFor('post', '/v1/charges'), 'post'), 'methods are case-sensitive');
  t.same(policies.all, [defaults, wide, charges, patch, off]);
  t.equal(policies.defaults, defaults);
});

t.test('faults of patterns', async (t) => {
  const rows: [pattern: string, fault: string | null][] = [
    ['/', null],
    ['/v1/charges', null],
    ['/v1/*/refund', null],
    ['/*', null],
    ['/caf%C3%A9', null],
    ['v1', 'must start with a slash; write /v1'],
    ['/a?b=c', 'write the path alone: /a'],
    ['/a#b', 'write the path alone: /a'],
    ['/café', 'percent-encoded'],
    ['/a b', 'percent-encoded'],
    ['/a%2', 'percent-encoded'],
    ['/a%2Fb', 'encoded slash'],
    ['/a\\b', 'backslash'],
    ['/a//b', 'write /a/b'],
    ['/a/', 'write /a for this path or /a/* for it and all below'],
    ['/a/../b', 'dot segment'],
    ['/a/./b', 'dot segment'],
    ['/a/%2e%2E/b', 'dot segment'],
    ['/a/b*', '* as a whole segment'],
    ['/a/**', '* as a whole segment'],
  ];
  for (const [pattern, fault] of rows) {
    const found = patternFault(pattern);
    if (fault === null) t.equal(found, null, pattern);
    else t.ok(found?.includes(fault), `${pattern}: ${found}`);
  }
});

t.test('what to write instead of a pattern with a query', async (t) => {
  for (const pattern of ['/a?b=c', '/a#b', '/a?'])
    t.equal(patternFault(pattern), 'holds a query or fragment; write the path alone: /a', pattern);
});

t.test('spellings of one pattern', async (t) => {
  t.equal(patternId('/v1/%63harges'), patternId('/v1/charges'));
  t.equal(patternId('/caf%c3%a9/*'), '/caf%C3%A9/*');
  t.equal(patternId('/*'), '/*');
  t.equal(patternId('/'), '/');
  t.not(patternId('/a'), patternId('/a/*'));
  t.same(parsePattern('/a/*/b/*'), { segments: ['a', null, 'b'], below: true });
  t.equal(normalPath('/../..'), '/');
});

const segment = fc.constantFrom('a', 'b', 'c');
const patterns = fc.uniqueArray(
  fc
    .tuple(fc.array(fc.oneof(segment, fc.constant('*')), { maxLength: 4 }), segment, fc.boolean())
    .map(([middle, last, below]) => `/${[...middle, last, ...(below ? ['*'] : [])].join('/')}`),
  { minLength: 1, maxLength: 8 },
);
const path = fc.array(segment, { maxLength: 6 }).map((segments) => `/${segments.join('/')}`);

t.test('any patterns: what is chosen matches, and their order never matters', async (t) => {
  fc.assert(
    fc.property(patterns, path, (list, target) => {
      const chosen = routeOf(list, target);
      const matching = list.filter((pattern) =>
        new RegExp(
          `^${pattern.replace(/\/\*$/, '(/.*)?').replaceAll('/*/', '/[^/]+/').replaceAll('/*/', '/[^/]+/')}$`,
        ).test(target),
      );
      return (
        (chosen === 'default' ? matching.length === 0 : matching.includes(chosen)) &&
        routeOf(list.toReversed(), target) === chosen &&
        routeOf(list.toSorted(), target) === chosen
      );
    }),
    { numRuns: 500 },
  );
  t.pass();
});

t.test('a route is shadowed if and only if no path finds it', async (t) => {
  const segments = ['a', '*'];
  const level = (n: number): string[] =>
    n === 0 ? [''] : level(n - 1).flatMap((path) => segments.map((segment) => `${path}/${segment}`));
  const patterns = ['/', ...level(1), ...level(2), ...level(3)];
  const paths = [
    '/',
    ...['a', 'b'].flatMap((x) => [`/${x}`, ...['a', 'b'].flatMap((y) => deeper(`/${x}/${y}`))]),
  ];
  function deeper(path: string): string[] {
    return [path, ...['a', 'b'].flatMap((x) => [`${path}/${x}`, `${path}/${x}/b`, `${path}/${x}/b/b`])];
  }
  fc.assert(
    fc.property(fc.uniqueArray(fc.constantFrom(...patterns), { minLength: 1, maxLength: 8 }), (chosen) => {
      const policies = compiled(chosen);
      const found = new Set(paths.map((path) => policies.policyFor('POST', path).route));
      for (const pattern of chosen) {
        const others = chosen.filter((other) => other !== pattern);
        if (isShadowed(pattern, others) === found.has(pattern)) return false;
      }
      return true;
    }),
    { numRuns: 3_000 },
  );
  t.ok(isShadowed('/*', ['/', '/*/*']));
  t.ok(isShadowed('/*/a/*', ['/*/a', '/*/a/*/*']));
  t.notOk(isShadowed('/a', ['/a/*']));
});

t.test('what other routers would read as a parameter', async (t) => {
  for (const segment of [':id', '{id}', '<id>', '$id']) t.equal(templateSegment(`/v1/${segment}/x`), segment);
  for (const pattern of ['/v1/*', '/a:b', '/v1/charges:refund', '/$', '/{id}.pdf', '/<id>x', '/$id-x'])
    t.equal(templateSegment(pattern), null);
});

t.test('a request that may run as either of two methods', async (t) => {
  const post = policy('/a', { methods: ['POST'], requireKey: false });
  const put = policy('/a', { methods: ['PUT'] });
  const off = policy('/b', { mode: 'off', methods: ['POST'] });
  const patch = policy('/b', { methods: ['PATCH'] });
  const routes = compileRoutes(defaults, [post, put, off, patch]);
  const rows: [methods: [string, ...string[]], path: string, route: Policy, guarded: boolean][] = [
    [['GET', 'POST'], '/a', post, true],
    [['GET', 'PUT'], '/a', put, true],
    [['DELETE', 'POST'], '/a', post, true],
    [['GET', 'DELETE'], '/a', post, false],
    [['POST', 'PATCH'], '/b', patch, true],
    [['GET', 'POST'], '/b', off, false],
    [['GET', 'POST'], '/c', defaults, true],
    [['GET', 'PUT'], '/c', defaults, false],
    [['GET', 'POST'], '*', defaults, true],
  ];
  for (const [methods, path, wanted, guarded] of rows) {
    const found = routes.policyForAny(methods, path);
    t.equal(found, wanted, `${methods.join(' ')} ${path}`);
    t.equal(
      methods.some((method) => isGuarded(found, method)),
      guarded,
    );
  }
  t.match(routes.policyForAny(['POST', 'PUT'], '/a'), { requireKey: true, methods: ['POST', 'PUT'] });
  t.match(routes.policyForAny(['GET', 'POST', 'PUT'], '/a'), { requireKey: true });
});

t.test('in any letter case, where that is asked for', async (t) => {
  const patterns = ['/v1/Charges', '/v1/*/Refund', '/caf%C3%A9/*', '/latin/%E9', '/a@b%C3%A9'];
  const policies = patterns.map((pattern) => policy(pattern));
  const any = compileRoutes(defaults, policies, true);
  const exact = compileRoutes(defaults, policies);
  const rows: [path: string, route: string][] = [
    ['/v1/charges', '/v1/Charges'],
    ['/V1/CHARGES', '/v1/Charges'],
    ['/V1/CHARGES/', '/v1/Charges'],
    ['/v1/%63%48arges;x', '/v1/Charges'],
    ['/v1/CH/REFUND', '/v1/*/Refund'],
    ['/CAF%C3%89', '/caf%C3%A9/*'],
    ['/caf%c3%89/X', '/caf%C3%A9/*'],
    ['/Latin/%e9', '/latin/%E9'],
    ['/latin/%C9', 'default'],
    ['/A@B%C3%89', '/a@b%C3%A9'],
    ['/v1/charge', 'default'],
  ];
  for (const [path, route] of rows) {
    t.equal(any.policyFor('POST', path).route, route, path);
    t.equal(exact.policyFor('POST', path).route, 'default', `${path} in this case only`);
  }
  t.equal(any.policyFor('POST', '/v1/Charges').route, '/v1/Charges');
  const odd = compileRoutes(defaults, [policy('/v1/Pay:{id}!'), policy('/x/%2A')], true);
  t.equal(odd.policyFor('POST', '/V1/pay%3A%7BID%7D%21').route, '/v1/Pay:{id}!');
  t.equal(odd.policyFor('POST', '/x/y').route, 'default');
  t.equal(patternId('/A/%C3%89', true), patternId('/a/%c3%a9', true));
  t.not(patternId('/A'), patternId('/a'));
  t.ok(isShadowed('/a/*', ['/A', '/a/*/*'], true));
  t.notOk(isShadowed('/a/*', ['/A', '/a/*/*']));
});
