import t from 'tap';
import { ask, problemOf } from '../helpers/client.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { testUpstream } from '../helpers/upstream.ts';

const openByDefault = 'defaults: { mode: off }\nroutes: [{ path: /charges, mode: enforce }]\n';
const spellings = ['/charges', '/Charges', '/CHARGES/', '/charges/', '/%43harges', '/cHarges;x=1'];

t.test('with ignoreCase a route guards its path in every letter case', async (t) => {
  const upstream = await testUpstream(t);
  const config = `${openByDefault}routing: { ignoreCase: true }`;
  const { dataUrl } = await sidecar(t, { upstream: upstream.url, config });
  for (const path of spellings) {
    t.equal(problemOf(await ask(dataUrl + path, { body: '{}' })).code, 'key_missing', path);
  }
  t.equal(upstream.executions.length, 0);
  for (const path of spellings) {
    t.equal(
      (await ask(dataUrl + path, { key: 'k', body: '{}' })).headers['idempotency-status'],
      'executed',
      path,
    );
    t.equal(
      (await ask(dataUrl + path, { key: 'k', body: '{}' })).headers['idempotency-status'],
      'replayed',
      path,
    );
    t.equal(upstream.executions.at(-1)?.url, path, 'forwarded as it came');
  }
  t.equal(upstream.executions.length, spellings.length, 'a key counts on the path as it came');
});

t.test('without it a config that is open by default is warned of at the start', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl, lines } = await sidecar(t, { upstream: upstream.url, config: openByDefault });
  t.equal((await ask(`${dataUrl}/Charges`, { body: '{}' })).status, 201, 'which is why');
  t.equal(
    problemOf(await ask(`${dataUrl}/charges/`, { body: '{}' })).code,
    'key_missing',
    'a slash changes nothing',
  );
  t.match(lines.join('\n'), /defaults\.mode: is off: a path that no route matches is not guarded/);
});
