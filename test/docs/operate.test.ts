import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import t from 'tap';
import { run } from '../../src/cli/run.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { ask } from '../helpers/client.ts';
import { ownServer, query, testDatabase } from '../helpers/postgres.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { testUpstream } from '../helpers/upstream.ts';

const page = readFileSync(new URL('../../docs/operate.md', import.meta.url), 'utf8');

t.test('the metrics are those that there are', async (t) => {
  const metrics = createMetrics({ attempts: () => 0, unsettled: () => 0, refusing: () => false });
  t.teardown(metrics.end);
  const real = (await metrics.text()).matchAll(/^# TYPE (oncegate_\w+)/gm);
  const listed = page.matchAll(/^\| `(oncegate_\w+)` \|/gm);
  const names = new Set([...listed].map(([, name]) => name));
  t.strictSame(names, new Set([...real].map(([, name]) => name)));
  for (const [name] of page.matchAll(/oncegate_(?!reader)\w+/g)) t.ok(names.has(name), name);
});

t.test('doctor looks at what the page shows', async (t) => {
  const { url } = await testDatabase(t);
  const upstream = await testUpstream(t);
  let said = '';
  const stdout = { write: (text: string) => (said += text) };
  const argv = ['doctor', upstream.url, '--database-url', url, '--json'];
  await run([...argv, '--listen', '127.0.0.1:0', '--ops-listen', '127.0.0.1:0'], {
    stdout,
    stderr: stdout,
    env: {},
  });
  const { checks } = JSON.parse(said) as { checks: { name: string }[] };
  const shown = [...page.matchAll(/^ {2}[✓!✗-] (\w+) /gm)].map(([, name]) => name);
  t.strictSame(
    shown,
    checks.map(({ name }) => name),
  );
});

/** The marked blocks, in order: the role, what is unknown, one request, what stays in progress. */
const blocks = [
  ...page.matchAll(/<!-- run by test\/docs\/operate\.test\.ts -->\n```sql\n([\s\S]*?)```/g),
].map(([, sql]) => sql ?? '');

t.test('the queries answer, by a role that may only read', async (t) => {
  const server = await ownServer(t);
  const upstream = await testUpstream(t, (_one, res) => res.destroy());
  const { dataUrl } = await sidecar(t, { upstream: upstream.url, databaseUrl: server.url });
  const requestId = randomUUID();
  const headers = { 'X-Request-Id': requestId };
  t.equal((await ask(`${dataUrl}/charges`, { key: 'lost', body: '{}', headers })).status, 502);

  const [role = '', unknown = '', request = '', overdue = ''] = blocks;
  t.equal(blocks.length, 4);
  await query(server.url, role);
  const reader = new URL(server.url);
  reader.username = 'oncegate_reader';
  reader.password = 'change-me';
  t.match(await query(reader.href, unknown), [{ key: 'lost', path: '/charges', request_id: requestId }]);
  const example = /request_id = '(.+?)'/.exec(request)?.[1] ?? '';
  t.match(await query(reader.href, request.replace(example, requestId)), [{ state: 'unknown' }]);
  t.strictSame(await query(reader.href, overdue), []);
  await query(
    server.url,
    `UPDATE oncegate.record SET state = 'in_progress', deadline = now() - interval '1 h'`,
  );
  t.match(await query(reader.href, overdue), [{ request_id: requestId }]);
  await t.rejects(query(reader.href, 'SELECT body FROM oncegate.record'), /permission denied/);
  await t.rejects(query(reader.href, `UPDATE oncegate.record SET state = 'unknown'`), /permission denied/);
});
