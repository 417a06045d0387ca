import { Agent } from 'node:http';
import t from 'tap';
import { ask } from '../helpers/client.ts';
import { query, testDatabase } from '../helpers/postgres.ts';
import { countRecords } from '../helpers/records.ts';
import { sidecarProcess } from '../helpers/sidecar.ts';
import { testUpstream } from '../helpers/upstream.ts';

const keys = 2_000;

t.test('2,000 released keys, all retried at once: none gets 503, each runs once', async (t) => {
  // The first time the upstream is too busy: that answer frees the key.
  const upstream = await testUpstream(t, (_execution, res) => {
    const isFirstRound = upstream.executions.length <= keys;
    res.writeHead(isFirstRound ? 429 : 201).end(isFirstRound ? 'later' : 'ran');
  });
  const { url: databaseUrl } = await testDatabase(t);
  // Every commit takes 20 ms at least, as with a synchronous standby in another zone.
  const name = new URL(databaseUrl).pathname.slice(1);
  for (const setting of ['commit_delay = 20000', 'commit_siblings = 0'])
    await query(databaseUrl, `ALTER DATABASE "${name}" SET ${setting}`);
  const { dataUrl } = await sidecarProcess(t, { databaseUrl, log: 'dropped', upstream: upstream.url });
  const agent = new Agent({ keepAlive: true, timeout: 60_000 });
  t.teardown(() => agent.destroy());
  const all = async () => {
    const answers = Array.from({ length: keys }, (_, n) =>
      ask(`${dataUrl}/charges`, { key: `key-${n}`, body: `{"n":${n}}`, agent }),
    );
    const counts: Record<number, number> = {};
    for (const { status } of await Promise.all(answers)) counts[status] = (counts[status] ?? 0) + 1;
    return counts;
  };
  t.same(await all(), { 429: keys }, 'of new keys none gets 503');
  t.equal(await countRecords(databaseUrl, `state = 'failed_retryable'`), keys);
  t.same(await all(), { 201: keys });
  const again = upstream.executions.slice(keys);
  t.equal(again.length, keys);
  t.equal(new Set(again.map((one) => one.key)).size, keys);
  t.equal(await countRecords(databaseUrl, `state = 'completed'`), keys);
});
