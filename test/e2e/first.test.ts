import t from 'tap';
import { ask } from '../helpers/client.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { testUpstream } from '../helpers/upstream.ts';

t.test('first', async (t) => {
  const up = await testUpstream(t);
  const s = await sidecar(t, { upstream: up.url });
  const a = await ask(s.dataUrl + '/charges?x=1', { key: 'k1', body: '{"amount":12345678901234567890}' });
  console.log(a.status, a.rawHeaders, a.body.toString());
  const b = await ask(s.dataUrl + '/charges?x=1', {
    key: '"k1"',
    body: '{ "amount" : 12345678901234567890 }',
  });
  console.log(b.status, b.rawHeaders, b.body.toString());
  const c = await ask(s.dataUrl + '/charges?x=1', { key: 'k1', body: '{"amount":12345678901234567891}' });
  console.log(c.status, c.rawHeaders, c.body.toString());
  console.log(up.executions.map((e) => [e.rawHeaders.join(' '), e.body.toString()]));
  const d = await ask(s.dataUrl + '/charges', {});
  console.log(d.status, d.body.toString());
  const n = Date.now();
  const many = await Promise.all(
    Array.from({ length: 500 }, (_, i) => ask(s.dataUrl + '/c', { key: 'm' + (i % 50), body: '{}' })),
  );
  console.log(
    many.map((x) => x.status).reduce((m, x) => ((m[x] = (m[x] ?? 0) + 1), m), {} as any),
    up.executions.length,
    Date.now() - n,
  );
  console.log(
    (await ask(s.opsUrl + '/readyz', { method: 'GET' })).body.toString(),
    (await ask(s.opsUrl + '/metrics', { method: 'GET' })).body
      .toString()
      .split('\n')
      .filter((l) => /^oncegate.*(total|count)/.test(l))
      .join('\n'),
  );
  console.log(s.lines.slice(0, 6).join(''));
});
