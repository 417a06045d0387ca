import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import pg from 'pg';
import t, { type Test } from 'tap';
import { ownServer, query, type Teardown, testDatabase } from '../helpers/postgres.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { tcpProxy } from '../helpers/tcp-proxy.ts';
import { until } from '../helpers/until.ts';
import { testUpstream } from '../helpers/upstream.ts';
import { closedPort } from '../proxy/pass-through-server.ts';

interface Ended {
  readonly code: number;
  readonly err: string;
  readonly out: string;
}

/** A start that must fail: one that serves is killed by this limit, which is past the 30 s that a store may take. */
const limitMs = 60_000;

const anyPort = '127.0.0.1:0';

function serve(env: NodeJS.ProcessEnv, ...args: string[]): Promise<Ended> {
  const argv = ['--import=tsx', 'src/cli/oncegate.ts', 'serve', 'http://127.0.0.1:1', ...args];
  const ports = { ONCEGATE_LISTEN_DATA: anyPort, ONCEGATE_LISTEN_OPS: anyPort };
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      argv,
      { env: { PATH: process.env['PATH'], ...ports, ...env }, timeout: limitMs },
      (_, out, err) => resolve({ code: child.exitCode ?? -1, err, out }),
    );
  });
}

/** What went wrong and what to do, and nothing that only we could read. */
function isClear(t: Test, { err, out }: Ended, message: RegExp): void {
  t.match(err, message);
  t.match(err, /^oncegate: /);
  t.notMatch(err + out, /\n\s+at |node:internal|Error:|This is a bug/, 'no stack trace');
  t.notMatch(out, '"msg":"serving"');
}

async function occupiedPort(t: Teardown): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

t.test('a stop while it waits for its store ends the wait', async (t) => {
  const address = `postgres://user:hidden@127.0.0.1:${await closedPort()}/db`;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    const child = spawn(
      process.execPath,
      ['--import=tsx', 'src/cli/oncegate.ts', 'serve', 'http://127.0.0.1:1', '--database-url', address],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    t.teardown(() => child.kill('SIGKILL'));
    const exited = once(child, 'exit');
    let said = '';
    child.stdout.on('data', (chunk) => (said += String(chunk)));
    await until('it waits', () => said.includes('trying again'));
    const tries = () => said.split('trying again').length - 1;
    const triesBefore = tries();
    child.kill(signal);
    t.same(await exited, [0, null], signal);
    t.match(said, 'stopped before it served');
    t.ok(tries() <= triesBefore + 5, 'it does not try on until its time is over');
  }
});

t.test('a store that cuts the last looks before it serves is asked again', async (t) => {
  const { url } = await testDatabase(t);
  const { hostname, port } = new URL(url);
  for (const statement of ['SELECT 1', 'INSERT INTO oncegate.instance']) {
    const proxy = await tcpProxy(t, { host: hostname, port: Number(port) });
    const cut = proxy.onceClientSends(statement, 'cut-before');
    const { lines } = await sidecar(t, { upstream: 'http://127.0.0.1:1', databaseUrl: proxy.through(url) });
    await cut.fired;
    t.ok(
      lines.some((line) => line.includes('trying again')),
      statement,
    );
  }
});

t.test('it says where it listens, what it keeps keys in, what it guards, and what is risky', async (t) => {
  const { lines } = await sidecar(t, {
    upstream: 'http://127.0.0.1:1',
    config: 'defaults: { retention: 5m }\nroutes: [{ path: /hooks/*, mode: off }]',
  });
  const said = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  t.match(
    said.find(({ msg }) => msg === 'serving'),
    {
      data: /^http:\/\/127/,
      ops: /^http:\/\/127/,
      store: /^PostgreSQL at 127\.0\.0\.1:\d+\/test_\w+, no TLS$/,
      schema: Number,
      routes: [/^\/hooks\/\* +passes everything through/, /^other paths +guards POST, PATCH → http.*kept 5m/],
    },
  );
  t.match(
    said.filter(({ level }) => level === 40).map(({ msg }) => msg),
    [/defaults\.retention: is 5m/],
  );
});

t.test('an asynchronous standby: it says what a failover would lose', async (t) => {
  const server = await ownServer(t);
  const standby = new pg.Client({ connectionString: `${server.url}?replication=true` });
  standby.on('error', () => {});
  t.teardown(() => standby.connection.stream.destroy());
  await standby.connect();
  void standby.query('START_REPLICATION PHYSICAL 0/1000000').catch(() => {});
  await until(
    'it streams',
    async () => (await query(server.url, 'SELECT FROM pg_stat_replication')).length === 1,
  );
  const { lines } = await sidecar(t, { upstream: 'http://127.0.0.1:1', databaseUrl: server.url });
  const warnings = lines.filter((line) => line.includes('"level":40') && line.includes('standby'));
  t.match(warnings, [/the store has 1 standby, none of them synchronous.*set synchronous_standby_names/]);
});

t.test('who may get whose answer is warned of at the start', async (t) => {
  const { url } = await testDatabase(t);
  const warningsWith = async (env: NodeJS.ProcessEnv) => {
    const { lines } = await sidecar(t, { upstream: 'http://127.0.0.1:1', databaseUrl: url, env });
    return lines.filter((line) => line.includes('"level":40')).join('\n');
  };
  t.match(await warningsWith({}), /tenant none: .*set tenant\.from[^]*two services on one database/);
});

t.test('a start that cannot be: one clear message and the right exit code', async (t) => {
  // It takes 30 s and hardly any work: meanwhile the others run.
  const address = `postgres://user:hidden@127.0.0.1:${await closedPort()}/db`;
  const unreachable = serve({ DATABASE_URL: address });

  await t.test('ports in use: both are told at once, before anything is asked of the store', async (t) => {
    const { url } = await testDatabase(t);
    const [data, ops] = [await occupiedPort(t), await occupiedPort(t)];
    for (const workers of ['1', '2']) {
      const env = { DATABASE_URL: url, ONCEGATE_STORE_MIGRATE: 'auto', ONCEGATE_WORKERS: workers };
      const ended = await serve(env, '--listen', data, '--ops-listen', ops);
      t.equal(ended.code, 1);
      isClear(
        t,
        ended,
        new RegExp(
          `cannot listen on ${data}: it is in use.*--listen[^]*cannot listen on ${ops}: .*--ops-listen`,
        ),
      );
    }
    t.same(await query(url, `SELECT to_regclass('oncegate.record') AS made`), [{ made: null }]);
  });

  await t.test('schema too old, too new', async (t) => {
    const { url } = await testDatabase(t);
    const old = await serve({ DATABASE_URL: url });
    t.equal(old.code, 3);
    isClear(t, old, /schema is version 0, this Oncegate needs \d+.* migrate up/);
    t.same(
      await query(url, `SELECT to_regclass('oncegate.record') AS there`),
      [{ there: null }],
      'only looked at',
    );

    await sidecar(t, { upstream: 'http://127.0.0.1:1', databaseUrl: url });
    await query(url, `INSERT INTO oncegate.migration (number, title) VALUES (9999, 'from the future')`);
    for (const migrate of ['check', 'auto']) {
      const tooNew = await serve({ DATABASE_URL: url, ONCEGATE_STORE_MIGRATE: migrate });
      t.equal(tooNew.code, 3, `migrate: ${migrate}`);
      isClear(t, tooNew, /schema is version 9999, newer than this Oncegate knows.*newer Oncegate/);
    }
  });

  await t.test('identity settings changed', async (t) => {
    const upstream = await testUpstream(t);
    const { databaseUrl } = await sidecar(t, { upstream: upstream.url });
    for (const changed of [
      { ONCEGATE_SCOPE: '[tenant]' },
      { ONCEGATE_TENANT_FROM: '{ header: X-Tenant }' },
      { ONCEGATE_KEY_FROM: '["header:Other-Key"]' },
    ]) {
      const ended = await serve({ DATABASE_URL: databaseUrl, ...changed });
      t.equal(ended.code, 2, Object.keys(changed).join());
      isClear(t, ended, /settings that make a key unique differ[^]*the store has[^]*--accept-identity/);
    }
  });

  const pooled =
    process.env['ONCEGATE_TEST_POOLER'] && 'a pooler keeps connections that have the old setting';
  await t.test('a server that may lose commits', { skip: pooled || false }, async (t) => {
    const { url } = await testDatabase(t);
    await query(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET synchronous_commit = off`);
    const ended = await serve({ DATABASE_URL: url, ONCEGATE_STORE_MIGRATE: 'auto' });
    t.equal(ended.code, 2);
    isClear(t, ended, /may lose acknowledged commits.*store\.durability: relaxed/);
  });

  await t.test('no store at all', async (t) => {
    const ended = await serve({});
    t.equal(ended.code, 2);
    isClear(t, ended, /no store: set DATABASE_URL/);
  });

  await t.test('store unreachable', async (t) => {
    const ended = await unreachable;
    t.equal(ended.code, 4);
    isClear(t, ended, /the store does not answer/);
    t.match(ended.out, /trying again for \d+ s/, 'it says that it waits');
    t.notMatch(ended.err + ended.out, 'hidden', 'without the password');
  });
});
