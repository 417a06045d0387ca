import t from 'tap';
import { ask, problemOf } from '../helpers/client.ts';
import { query, testDatabase } from '../helpers/postgres.ts';
import { sidecar, sidecarProcess } from '../helpers/sidecar.ts';
import { tcpProxy } from '../helpers/tcp-proxy.ts';
import { until } from '../helpers/until.ts';
import { testUpstream } from '../helpers/upstream.ts';

const config = `
lease: 1s
loops: { sweep: 100ms, reap: 1s }
defaults: { dispatchMark: true, inFlight: { wait: 0s } }`;

/** Only this statement has it on the wire. */
const mark = 'SET dispatched = true';

t.test('killed between its reservation and its mark: the key is free again, and runs once', async (t) => {
  const upstream = await testUpstream(t, (_, res) => res.writeHead(201).end('ran'));
  const { url } = await testDatabase(t);
  const { hostname, port } = new URL(url);
  const proxy = await tcpProxy(t, { host: hostname, port: Number(port) });
  const other = await sidecar(t, { upstream: upstream.url, databaseUrl: url, config });
  const victim = await sidecarProcess(t, { upstream: upstream.url, databaseUrl: proxy.through(url), config });
  const marking = proxy.onceClientSends(mark, 'hold');
  const asked = ask(`${victim.dataUrl}/charges`, { key: 'k', body: '{}' }).catch(() => null);
  await marking.fired;
  victim.kill('SIGKILL');
  await asked;
  t.equal(upstream.countOf('k'), 0);
  const answer = await until('the retry runs', async () => {
    const retry = await ask(`${other.dataUrl}/charges`, { key: 'k', body: '{}' });
    if (retry.status === 201) return retry;
    t.equal(problemOf(retry).code, 'in_progress', 'never unknown');
    return null;
  });
  t.equal(answer.headers['idempotency-status'], 'executed');
  t.equal(upstream.countOf('k'), 1);
});

t.test('killed after its mark: unknown', async (t) => {
  const upstream = await testUpstream(t, () => {});
  const { url } = await testDatabase(t);
  const other = await sidecar(t, { upstream: upstream.url, databaseUrl: url, config });
  const victim = await sidecarProcess(t, { upstream: upstream.url, databaseUrl: url, config });
  const asked = ask(`${victim.dataUrl}/charges`, { key: 'k', body: '{}' }).catch(() => null);
  await upstream.received(1);
  t.match(
    await query(url, 'SELECT dispatched FROM oncegate.record'),
    [{ dispatched: true }],
    'marked before sent',
  );
  victim.kill('SIGKILL');
  await asked;
  await until('it is unknown', async () => {
    const retry = await ask(`${other.dataUrl}/charges`, { key: 'k', body: '{}' });
    return problemOf(retry).code === 'outcome_unknown';
  });
  t.equal(upstream.countOf('k'), 1);
});

t.test('a mark that is not acknowledged: 503, nothing is sent, the retry runs', async (t) => {
  const upstream = await testUpstream(t, (_, res) => res.writeHead(201).end('ran'));
  const { url } = await testDatabase(t);
  const { hostname, port } = new URL(url);
  const proxy = await tcpProxy(t, { host: hostname, port: Number(port) });
  const { dataUrl } = await sidecar(t, { upstream: upstream.url, databaseUrl: proxy.through(url), config });
  proxy.onceClientSends(mark, 'cut-after');
  const first = await ask(`${dataUrl}/charges`, { key: 'k', body: '{}' });
  t.equal(first.status, 503);
  t.match(problemOf(first), { code: 'store_unavailable', retryable: true });
  t.equal(upstream.countOf('k'), 0);
  t.equal((await ask(`${dataUrl}/charges`, { key: 'k', body: '{}' })).status, 201);
  t.equal(upstream.countOf('k'), 1);
});
