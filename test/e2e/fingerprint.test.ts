import t from 'tap';
import { ask } from '../helpers/client.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { testUpstream } from '../helpers/upstream.ts';

t.test('a boundary of 15,000 bytes and a body of near misses hold nobody up', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl } = await sidecar(t, { upstream: upstream.url });
  const boundary = 'b'.repeat(15_000);
  const nearMiss = `\r\n--${boundary.slice(1)}`;
  const body = Buffer.from(`--${boundary}\r\n${nearMiss.repeat(68)}`);
  /** CPU of one request, and of the upstream and the client with it. The least of several counts. */
  const cpuUs = async (name: string, type: string): Promise<number> => {
    let least = Number.POSITIVE_INFINITY;
    for (let i = 0; i < 3; i += 1) {
      const before = process.cpuUsage();
      const answer = await ask(dataUrl, { key: `${name}-${i}`, headers: { 'Content-Type': type }, body });
      t.equal(answer.headers['idempotency-status'], 'executed', name);
      const { user, system } = process.cpuUsage(before);
      least = Math.min(least, user + system);
    }
    return least;
  };
  const plain = await cpuUs('plain', 'application/octet-stream');
  const hostile = await cpuUs('hostile', `multipart/form-data; boundary=${boundary}`);
  t.ok(hostile < 10 * plain, `${hostile} µs; a body of no type that is read costs ${plain} µs`);
});

t.test(
  'a form whose fields an upstream may read as one is the same request only in the same order',
  async (t) => {
    const upstream = await testUpstream(t);
    const { dataUrl } = await sidecar(t, { upstream: upstream.url });
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
    const pairs: [first: string, second: string, status: number][] = [
      ['amount=1&currency=usd', 'currency=usd&amount=1', 201],
      ['amount=1&Amount=900', 'Amount=900&amount=1', 422],
      ['a_b=1&a.b=900', 'a.b=900&a_b=1', 422],
      ['a=1&a[b]=900', 'a[b]=900&a=1', 422],
    ];
    for (const [first, second, status] of pairs) {
      t.equal((await ask(dataUrl, { key: first, headers, body: first })).status, 201, first);
      t.equal(
        (await ask(dataUrl, { key: first, headers, body: first })).headers['idempotency-status'],
        'replayed',
      );
      t.equal((await ask(dataUrl, { key: first, headers, body: second })).status, status, second);
    }
    t.equal(upstream.executions.length, pairs.length, 'each ran once');
  },
);
