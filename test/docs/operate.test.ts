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
  const metrics = createMetrics(
    {
      attempts: () => 0,
      unsettled: () => 0,
      refusing: () => false,
      heldBytes: () => 0,
      heldLimitBytes: () => 0,
    },
    null,
  );
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

/** In order: finding, storing an answer, releasing, purging. */
const commandBlocks = [
  ...page.matchAll(/<!-- run by test\/docs\/operate\.test\.ts -->\n```sh\n([\s\S]*?)```/g),
].map(([, text]) => (text ?? '').trim().split('\n'));

t.test('an unknown outcome is settled by the commands as they stand there', async (t) => {
  const upstream = await testUpstream(t, (_one, res) => res.destroy());
  const { dataUrl, databaseUrl } = await sidecar(t, { upstream: upstream.url });
  const other = await sidecar(t, { upstream: upstream.url, databaseUrl });
  const [finding = [], storing = [], releasing = [], purging = []] = commandBlocks;
  t.equal(commandBlocks.length, 4);
  const charge = (key: string) => ask(`${dataUrl}/charges`, { key, body: '{}' });
  let id = '';
  /** As a shell would take it apart: what is quoted here has no quotes inside. */
  const type = async (line: string) => {
    const [program, ...argv] = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(
      (match) => match[1] ?? match[2] ?? '',
    );
    t.equal(program, 'oncegate');
    let said = '';
    const stdout = { write: (text: string) => (said += text) };
    const typed = argv.map((word) => (word === '3f2a9c0d11e4b7a6' ? id : word));
    t.equal(
      await run(typed, { stdout, stderr: stdout, env: { DATABASE_URL: databaseUrl } }),
      0,
      `${line}\n${said}`,
    );
    return said;
  };
  const lose = async (key: string) => {
    await charge(key);
    id = (await type('oncegate keys list')).match(/^\w{16}/m)?.[0] ?? '';
  };

  await lose('order-1');
  for (const line of finding) t.match(await type(line), id);
  t.match(await type(finding[0] ?? ''), /^ID .*\n\w{16}  unknown .*  UND_ERR_SOCKET: other side closed\n$/);
  await type(storing[0] ?? '');
  const replay = await charge('order-1');
  t.match(replay, {
    status: 201,
    headers: { 'content-type': 'application/json', 'idempotent-replayed': 'true' },
  });
  t.same(JSON.parse(replay.body.toString()), { charge: 'ch_1', status: 'paid' });
  await type(purging[0] ?? '');
  t.equal((await charge('order-1')).status, 201, 'it has that in memory');
  t.equal((await ask(`${other.dataUrl}/charges`, { key: 'order-1', body: '{}' })).status, 409);
  await lose('order-2');
  await type(releasing[0] ?? '');
  t.equal((await charge('order-2')).status, 502, 'it runs again');
});
