import t from 'tap';
import { exposedWith, grantedAgain, problemGrant } from '../../src/core/cors.ts';

const shop = 'https://shop.example';
const other = 'https://other.example';
const named = { origins: [shop] };
const any = { origins: ['*'] };
const noOne = { origins: [] };

/** As an object; what stands twice is a list. */
function shown(flat: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (let i = 0; i < flat.length; i += 2) {
    const name = (flat[i] as string).toLowerCase();
    found[name] = name in found ? `${found[name]} | ${flat[i + 1]}` : (flat[i + 1] as string);
  }
  return found;
}

t.test('who may read a problem', async (t) => {
  t.strictSame(problemGrant(noOne, shop), []);
  t.strictSame(shown(problemGrant(named, shop)), {
    'access-control-allow-origin': shop,
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers':
      'Idempotency-Status, X-Request-Id, Request-Id, Retry-After, Stripe-Should-Retry, X-Should-Retry',
    vary: 'Origin',
  });
  for (const origin of [other, undefined, 'null', `${shop}, ${shop}`, shop.toUpperCase()])
    t.strictSame(shown(problemGrant(named, origin)), { vary: 'Origin' }, `${origin}`);
  const all = shown(problemGrant(any, other));
  t.equal(all['access-control-allow-origin'], '*');
  t.notOk('access-control-allow-credentials' in all, 'never beside *');
  t.match(shown(problemGrant({ origins: ['*', shop] }, shop)), {
    'access-control-allow-origin': shop,
    'access-control-allow-credentials': 'true',
  });
});

t.test('our headers are listed where somebody may read the answer', async (t) => {
  t.strictSame(exposedWith(['Content-Type', 'a', 'Access-Control-Allow-Headers', 'b']), []);
  for (const name of ['Access-Control-Allow-Origin', 'access-control-allow-origin'])
    t.match(exposedWith(['A', '1', name, '*'])[1], /^Idempotency-Status, .*X-Request-Id/);
});

t.test('a stored grant, for whoever asks again', async (t) => {
  const rest = ['Content-Type', 'text/plain'];
  const of = (origin: string) => [
    ...rest,
    'access-control-allow-origin',
    origin,
    'Access-Control-Allow-Credentials',
    'true',
  ];
  t.equal(grantedAgain(rest, named, shop), rest, 'none: none is added');
  for (const origin of [shop, other, undefined]) {
    const stored = of('*');
    t.equal(grantedAgain(stored, noOne, origin), stored, 'one for all');
  }
  const stored = of(shop);
  t.equal(grantedAgain(stored, noOne, shop), stored, 'one for this origin');
  for (const origin of [other, undefined, 'null', `${shop}.evil.example`])
    t.strictSame(grantedAgain(stored, noOne, origin), [...rest, 'Vary', 'Origin'], `${origin}`);
  t.strictSame(shown(grantedAgain(of(other), named, shop)), {
    'content-type': 'text/plain',
    'access-control-allow-origin': shop,
    'access-control-allow-credentials': 'true',
    vary: 'Origin',
  });
  const plain = [...rest, 'Access-Control-Allow-Origin', other];
  t.notOk(
    'access-control-allow-credentials' in shown(grantedAgain(plain, named, shop)),
    'credentials are the word of the upstream',
  );
  t.strictSame(shown(grantedAgain(of(shop), any, other)), {
    'content-type': 'text/plain',
    'access-control-allow-origin': '*',
    vary: 'Origin',
  });
  const twice = [...of(other), 'Access-Control-Allow-Origin', shop];
  t.strictSame(grantedAgain(twice, noOne, shop), [...rest, 'Vary', 'Origin'], 'two are no grant');
});
