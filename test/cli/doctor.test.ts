import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { migrateUp } from '../../src/store/postgres/migrate.ts';
import { query, testDatabase } from '../helpers/postgres.ts';
import { RawUpstream, scripts } from '../helpers/raw-upstream.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { testUpstream } from '../helpers/upstream.ts';
import { closedPort } from '../proxy/pass-through-server.ts';
import { selfSigned } from '../upstream/certificate.ts';
import { anyPorts, doctor } from './doctor-run.ts';
import { inProcess } from './in-process.ts';

async function migrated(t: Parameters<typeof testDatabase>[0]): Promise<string> {
  const { url } = await testDatabase(t);
  await migrateUp(url);
  return url;
}

t.test('all is well: as people read it, in a process that ends by itself', async (t) => {
  const databaseUrl = await migrated(t);
  const upstream = await testUpstream(t);
  const argv = ['--import=tsx', 'src/cli/oncegate.ts', 'doctor', upstream.url, ...anyPorts];
  const { code, out } = await new Promise<{ code: number | null; out: string }>((resolve) => {
    const env = { PATH: process.env['PATH'], DATABASE_URL: databaseUrl };
    const child = execFile(process.execPath, argv, { env }, (_, out) =>
      resolve({ code: child.exitCode, out }),
    );
  });
  t.equal(code, 0);
  const lines = out.split('\n');
  t.same(
    lines.filter((line) => /^[A-Z]/.test(line)),
    ['Config', 'Store', 'Upstream', 'Exposure'],
  );
  // But for Node.js, whose line may be past its end, and for who may get whose answer.
  const others = lines.filter((line) => /^ {2}\S/.test(line) && !/^ {2}! (node|tenant|service) /.test(line));
  t.match(out, /! tenant .*\n.*set tenant\.from[^]*! service .*\n.*a database of its own/);
  for (const line of others) t.match(line, /^ {2}✓ \w+ +\S/);
  t.ok(others.length > 15);
  t.match(lines.at(-2), /^no faults, [23] warnings$/);
  t.notMatch(out, new RegExp(new URL(databaseUrl).password));
  t.same(await query(databaseUrl, 'SELECT FROM oncegate.record'), [], 'the probe left nothing');
  t.same(await query(databaseUrl, 'SELECT FROM oncegate.instance'), []);
  t.same(await query(databaseUrl, 'SELECT FROM oncegate.identity'), []);
  t.equal(upstream.executions.length, 0, 'and ran nothing');
});

t.test('a broken config: every fault, exit 2, and nothing else is looked at', async (t) => {
  const file = join(t.testdir({ 'c.yaml': 'upstream:\n  tmeout: 30s\nlease: 5\n' }), 'c.yaml');
  const seen = await doctor(t, ['--config', file, '--database-url', 'postgres://u:secret-1@127.0.0.1/d']);
  t.equal(seen.code, 2);
  t.match(seen.check('config'), { level: 'error', text: 'the configuration has 2 faults' });
  t.match(
    seen.check('config').advice,
    /c\.yaml:2:3: upstream\.tmeout: unknown field.*\n.*lease: has no unit/,
  );
  t.same(seen.names('skipped'), ['store', 'upstream', 'exposure']);
  t.match(seen.check('store').text, /because of config/);
  const { out } = await inProcess(['doctor', '--config', file]);
  t.match(out, /\n {2}✗ config .*2 faults\n {17}\S+c\.yaml:2:3: .*\n {17}\S+c\.yaml:3:8: /);
  t.match(out, /\n {2}- store .*\n[^]*\n1 fault, .*, 3 not looked at\n$/);
});

t.test('what serve would miss: no upstream, no store', async (t) => {
  const nowhere = await inProcess(['doctor', '--json', ...anyPorts]);
  t.equal(nowhere.code, 2);
  const levels = new Map<string, string>();
  for (const { name, level } of JSON.parse(nowhere.out).checks) levels.set(name, level);
  t.match(Object.fromEntries(levels), {
    config: 'error',
    reachable: 'error',
    probe: 'skipped',
    upstream: 'skipped',
  });
  const storeless = await doctor(t, anyPorts);
  t.equal(storeless.code, 2);
  t.match(storeless.check('reachable'), { level: 'error', advice: /DATABASE_URL/ });
  t.equal(storeless.check('upstream').level, 'ok', 'the rest is looked at');
});

t.test('risky settings are warned of, and end with 0', async (t) => {
  const env = { DATABASE_URL: await migrated(t), ONCEGATE_DEFAULTS_RETENTION: '5m', ONCEGATE_LAESE: '5s' };
  const seen = await doctor(t, anyPorts, env);
  t.equal(seen.code, 0);
  const warnings = seen.checks.filter(({ name, level }) => name === 'config' && level === 'warning');
  t.match(warnings, [
    { text: /retention: is 5m/, advice: 'write 1h or more' },
    { text: /ONCEGATE_LAESE sets nothing/, advice: /\S/ },
  ]);
});

t.test('upstreams: each origin once; refused or not verified is a fault with exit 1', async (t) => {
  const databaseUrl = await migrated(t);
  const pem = selfSigned('IP:127.0.0.1');
  const secure = await RawUpstream.listen(scripts.silent(), { cert: pem, key: pem });
  const plain = await RawUpstream.listen(scripts.silent());
  t.teardown(() => Promise.all([secure.close(), plain.close()]));
  const closed = await closedPort();
  const yaml = [
    'routes:',
    `  - { path: /a, upstream: { url: 'https://127.0.0.1:${secure.port}' } }`,
    `  - { path: /b, upstream: { url: 'http://127.0.0.1:${closed}' } }`,
    `  - { path: /c, upstream: { url: 'http://127.0.0.1:${closed}', timeout: 9s } }`,
  ].join('\n');
  const file = join(t.testdir({ 'c.yaml': yaml }), 'c.yaml');
  const seen = await doctor(t, [plain.origin, '--config', file, ...anyPorts], { DATABASE_URL: databaseUrl });
  t.equal(seen.code, 1);
  t.match(
    seen.checks.filter(({ group }) => group === 'Upstream'),
    [
      { level: 'ok', text: /accepts connections \(127\.0\.0\.1, .*no request was sent/ },
      { level: 'error', text: /self-signed/, advice: /NODE_EXTRA_CA_CERTS/ },
      { level: 'error', text: /ECONNREFUSED/, advice: /start the service/ },
    ],
  );
  t.equal(plain.bytes + secure.bytes, 0, 'not a byte was sent');
});

t.test('ports: taken by a sidecar, or by somebody else', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl, opsUrl, databaseUrl } = await sidecar(t, { upstream: upstream.url });
  const env = { DATABASE_URL: databaseUrl };
  const [data, ops] = [new URL(dataUrl).host, new URL(opsUrl).host];
  const running = await doctor(t, ['--listen', data, '--ops-listen', ops], env);
  t.equal(running.code, 0);
  for (const name of ['data', 'ops'])
    t.match(running.check(name), { level: 'ok', text: /a sidecar is running here/ });

  // Answers /livez, as many do.
  const other = createServer((_, res) => res.end('ok\n')).listen(0, '127.0.0.1');
  await once(other, 'listening');
  t.teardown(() => other.close());
  const taken = `127.0.0.1:${(other.address() as AddressInfo).port}`;
  const blocked = await doctor(t, ['--listen', '127.0.0.1:0', '--ops-listen', taken], env);
  t.equal(blocked.code, 1);
  t.match(blocked.check('ops'), { level: 'error', text: `${taken} is taken, and not by an Oncegate` });
  t.equal(blocked.check('data').level, 'ok');
  const foreign = await doctor(t, ['--listen', data, '--ops-listen', '127.0.0.1:0'], env);
  t.match(foreign.check('data'), { level: 'error', text: /not by an Oncegate/ }, 'no sidecar of this config');
  const away = await doctor(t, ['--listen', '192.0.2.1:1', '--ops-listen', '127.0.0.1:0'], env);
  t.match(away.check('data'), { level: 'error', text: /no address of this machine/ });
});
