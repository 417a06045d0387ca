import t from 'tap';
import { type Answer, ask, problemOf } from '../helpers/client.ts';
import { testDatabase } from '../helpers/postgres.ts';
import { countRecords } from '../helpers/records.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { testUpstream } from '../helpers/upstream.ts';

const callers = 20;

/** Every other caller speaks to the other sidecar. */
function crowd(urls: readonly string[], key: string): Promise<Answer>[] {
  return Array.from({ length: callers }, (_, i) => persist(`${urls[i % urls.length]}/charges`, key));
}

/** On a busy machine a commit may take longer than we wait for it: 503 says to retry, and that nothing was forwarded. */
async function persist(url: string, key: string): Promise<Answer> {
  for (;;) {
    const answer = await ask(url, { key, body: `{"for":"${key}"}` });
    if (answer.status !== 503) return answer;
  }
}

t.test('1,000 keys, each sent by 20 clients at once through two sidecars: each runs once', async (t) => {
  const keys = 1_000;
  const upstream = await testUpstream(t);
  const { url: databaseUrl } = await testDatabase(t);
  const both = [
    await sidecar(t, { upstream: upstream.url, databaseUrl }),
    await sidecar(t, { upstream: upstream.url, databaseUrl }),
  ];
  const urls = both.map((one) => one.dataUrl);
  let next = 0;
  const wrong: string[] = [];
  const statuses = new Map<string, number>();
  const work = async () => {
    while (next < keys) {
      const key = `key-${next++}`;
      const answers = await Promise.all(crowd(urls, key));
      const seen = new Set(answers.map(({ status, body }) => `${status} ${body.toString()}`));
      if (seen.size !== 1 || !answers.every(({ status }) => status === 201))
        wrong.push(`${key}: ${[...seen].join()}`);
      for (const { headers } of answers) {
        const status = String(headers['idempotency-status']);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    }
  };
  await Promise.all(Array.from({ length: 40 }, work));
  t.same(wrong, [], 'every caller of a key got the same bytes');
  t.equal(upstream.executions.length, keys);
  t.equal(new Set(upstream.executions.map((one) => one.key)).size, keys);
  t.same(Object.fromEntries(statuses), { executed: keys, replayed: keys * (callers - 1) });
  t.equal(await countRecords(databaseUrl, `state = 'completed'`), keys);
});

t.test('with no wait one gets 201, the others 409 with Retry-After', async (t) => {
  const keys = 50;
  const held = new Map<string, () => void>();
  const refusedToAll = new Set<string>();
  // The upstream answers only when everybody else has been answered.
  const letGo = (key: string) => {
    if (!refusedToAll.has(key)) return;
    held.get(key)?.();
    held.delete(key);
  };
  const upstream = await testUpstream(t, ({ key = '' }, res) => {
    held.set(key, () => res.writeHead(201).end(`ran ${key}`));
    letGo(key);
  });
  const { url: databaseUrl } = await testDatabase(t);
  const config = 'defaults: { inFlight: { wait: 0s } }';
  const both = [
    await sidecar(t, { upstream: upstream.url, databaseUrl, config }),
    await sidecar(t, { upstream: upstream.url, databaseUrl, config }),
  ];
  const urls = both.map((one) => one.dataUrl);
  const oneKey = async (key: string) => {
    const ran: Answer[] = [];
    const refused: Answer[] = [];
    const told = crowd(urls, key).map(async (one) => {
      const answer = await one;
      (answer.status === 201 ? ran : refused).push(answer);
      if (refused.length < callers - 1) return;
      refusedToAll.add(key);
      letGo(key);
    });
    await Promise.all(told);
    return { refused, ran };
  };
  const all = await Promise.all(Array.from({ length: keys }, (_, i) => oneKey(`key-${i}`)));
  for (const [i, { refused, ran }] of all.entries()) {
    t.same(
      ran.map(({ status, body }) => [status, body.toString()]),
      [[201, `ran key-${i}`]],
    );
    const told = refused.map((one) => `${one.status} ${problemOf(one).code} ${one.headers['retry-after']}`);
    t.same([...new Set(told)], ['409 in_progress 1']);
  }
  t.equal(upstream.executions.length, keys);
  const [again] = crowd(urls, 'key-0');
  t.equal((await again)?.headers['idempotency-status'], 'replayed', 'who comes later gets the answer');
});
