import { readFileSync } from 'node:fs';
import t from 'tap';
import { parse } from 'yaml';
import { run } from '../../src/cli/run.ts';
import { compilePolicies } from '../../src/config/config.ts';
import { readEnvironment } from '../../src/config/environment.ts';
import { loadConfig } from '../../src/config/load.ts';
import { ask } from '../helpers/client.ts';
import { ownServer, query } from '../helpers/postgres.ts';
import { sidecarProcess } from '../helpers/sidecar.ts';
import { testUpstream } from '../helpers/upstream.ts';

const page = readFileSync(new URL('../../docs/deploy.md', import.meta.url), 'utf8');
const blocks = (mark: string, language: string): string[] =>
  [
    ...page.matchAll(
      new RegExp(
        `<!-- ${mark} by test/docs/deploy\\.test\\.ts -->\\n\`\`\`${language}\\n([\\s\\S]*?)\`\`\``,
        'g',
      ),
    ),
  ].map(([, code]) => code ?? '');

t.test('two roles, as the page makes them, are enough', async (t) => {
  const [roles = '', grants = ''] = blocks('run', 'sql');
  const [migrate = ''] = blocks('run', 'sh');
  const server = await ownServer(t);
  // Its own database has that name already. One at a time: a database is not made inside a transaction.
  for (const statement of roles.replace('DATABASE oncegate', 'DATABASE shop').trim().split('\n'))
    await query(server.url, statement);
  const urlOf = (role: string, password: string) =>
    `postgres://${role}:${password}@127.0.0.1:${server.port}/shop`;
  const owner = urlOf('oncegate_owner', 'change-me');
  t.match(migrate, 'postgres://oncegate_owner:change-me@db:5432/oncegate');
  const argv = migrate
    .trim()
    .replace(/postgres:\S+/, owner)
    .split(' ')
    .slice(1);
  const output = { write: () => {} };
  t.equal(await run(argv, { stdout: output, stderr: output, env: {} }), 0);
  await query(owner, grants);

  const upstream = await testUpstream(t);
  const databaseUrl = urlOf('oncegate_app', 'change-me-too');
  const { dataUrl } = await sidecarProcess(t, {
    upstream: upstream.url,
    databaseUrl,
    env: { ONCEGATE_STORE_MIGRATE: 'check' },
  });
  const charge = () => ask(`${dataUrl}/charges`, { key: 'a', body: '{}' });
  t.equal((await charge()).headers['idempotency-status'], 'executed');
  t.equal((await charge()).headers['idempotency-status'], 'replayed');

  const keys = (...args: string[]) =>
    run(['keys', ...args], { stdout: output, stderr: output, env: { DATABASE_URL: databaseUrl } });
  const find = ['--key', 'a', '--path', '/charges'];
  t.equal(await keys('list'), 0);
  t.equal(await keys('show', ...find), 0);
  t.equal(await keys('purge', ...find, '--reason', 'test', '--yes'), 0);
  t.match(await query(owner, 'SELECT action FROM oncegate.audit'), [{ action: 'purge' }]);
  const privileges = await doctorSays(databaseUrl);
  t.match(privileges, { level: 'ok' });
});

/** What doctor thinks of the role's privileges. */
async function doctorSays(databaseUrl: string): Promise<{ level: string } | undefined> {
  let said = '';
  const stdout = { write: (text: string) => (said += text) };
  const anyPorts = ['--listen', '127.0.0.1:0', '--ops-listen', '127.0.0.1:0'];
  const argv = ['doctor', 'http://127.0.0.1:1', '--json', ...anyPorts];
  await run(argv, { stdout, stderr: stdout, env: { DATABASE_URL: databaseUrl } });
  const { checks } = JSON.parse(said) as { checks: { name: string; level: string }[] };
  return checks.find(({ name }) => name === 'privileges');
}

interface Compose {
  readonly services: { readonly oncegate: { readonly environment: NodeJS.ProcessEnv } };
}

t.test('the configurations are valid', async (t) => {
  const [file = '', compose = ''] = blocks('loaded', 'yaml');
  compilePolicies(loadConfig({ text: file, env: {} }));
  const { environment } = (parse(compose) as Compose).services.oncegate;
  t.strictSame(readEnvironment(environment).unknown, []);
  const config = loadConfig({ env: environment });
  t.equal(config.store.kind, 'external');
  compilePolicies(config);
});
