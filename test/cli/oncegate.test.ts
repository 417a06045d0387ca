import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { commands } from '../../src/cli/commands.ts';
import { run } from '../../src/cli/run.ts';
import { type Ended, inProcess } from './in-process.ts';

/** Without the environment of whoever runs the tests. */
function oncegate(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const argv = ['--import=tsx', 'src/cli/oncegate.ts', ...args];
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      argv,
      { env: { PATH: process.env['PATH'], ...env } },
      (_, out, err) => resolve({ code: child.exitCode ?? -1, out, err }),
    );
  });
}

t.test('help', async (t) => {
  const { code, out, err } = await oncegate(['help']);
  t.equal(code, 0);
  t.equal(err, '');
  for (const { usage } of commands) t.ok(out.includes(usage), usage);
  const asTyped = out.replaceAll('node --import=tsx src/cli/oncegate.ts', 'oncegate');
  t.not(asTyped, out, 'its commands are named as it was started');
  t.same(await inProcess([]), { code, out: asTyped, err }, 'so does no command');
  const serve = await inProcess(['help', 'serve']);
  t.match(serve.out, /--ops-listen HOST:PORT[^]*Examples:\n {2}oncegate serve/);
  t.same(await inProcess(['serve', '--lisen', 'x', '--help']), serve);
});

t.test('version', async (t) => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  t.same(await oncegate(['version']), { code: 0, out: `oncegate ${version}\n`, err: '' });
  t.same(JSON.parse((await inProcess(['version', '--json'])).out), { version, node: process.version });
  t.equal((await inProcess(['--version'])).code, 0);
});

t.test('misuse: exit 2, what is wrong, what to write, where to read', async (t) => {
  const rows: [args: string, err: RegExp][] = [
    ['srve', /^oncegate: unknown command srve; did you mean serve\?\nSee: oncegate help\n$/],
    ['frobnicate', /^oncegate: unknown command frobnicate; write one of serve, demo, validate, migrate/],
    ['help srve', /unknown command srve; did you mean serve/],
    [
      'serve --lisen x',
      /^oncegate: unknown flag --lisen; did you mean --listen\?\nSee: oncegate help serve\n$/,
    ],
    ['serve -x', /unknown flag -x/],
    ['serve --listen', /--listen needs a value; write --listen HOST:PORT/],
    ['serve --config --embedded', /--config needs a value; write --config FILE/],
    ['serve --embedded=yes', /--embedded takes no value/],
    ['serve --listen a:1 --listen b:1', /--listen is given twice/],
    ['serve http://a http://b', /one word too many: http:\/\/b/],
    ['version now', /one word too many: now/],
    ['migrate', /migrate needs one of up, status, sql\nSee: oncegate help migrate/],
    ['migrate statsu', /unknown: migrate statsu; did you mean status\?/],
    ['migrate sideways', /write up, status or sql/],
    ['migrate status --accept-identity', /--accept-identity goes with up only/],
  ];
  for (const [args, expected] of rows) {
    const { code, out, err } = await inProcess(args.split(' '));
    t.equal(code, 2, args);
    t.equal(out, '');
    t.match(err, expected);
  }
  t.match(await oncegate(['srve']), {
    code: 2,
    err: /^oncegate: unknown command srve; did you mean serve\?\nSee: [^\n]*\n$/,
  });
});

t.test('serve without what it needs: exit 2, one message, no stack', async (t) => {
  const missing = await oncegate(['serve', 'http://127.0.0.1:1']);
  t.match(missing, {
    code: 2,
    err: /^oncegate: no store: set DATABASE_URL, or store\.url .* --embedded [^\n]*\n$/,
  });
  const nowhere = await inProcess(['serve', '--embedded']);
  t.match(nowhere, { code: 2, err: /^oncegate: no upstream: .*ONCEGATE_UPSTREAM_URL\n$/ });
  const both = await inProcess([
    'serve',
    'http://127.0.0.1:1',
    '--embedded',
    '--database-url',
    'postgres://h/d',
  ]);
  t.match(both, { code: 2, err: /--embedded: store\.embedded: .* exclude each other/ });
  t.match(await inProcess(['migrate', 'up']), { code: 2, err: /^oncegate: no store/ });
  const embedded = await inProcess(['migrate', 'up'], { ONCEGATE_STORE_EMBEDDED: 'true' });
  t.match(embedded, { code: 2, err: /migrates by itself/ });
});

t.test('a broken config: exit 2, every fault with its place', async (t) => {
  const file = join(t.testdir({ 'c.yaml': 'upstream:\n  tmeout: 30s\nlease: 5\n' }), 'c.yaml');
  const { code, err } = await oncegate(['serve', '--config', file, 'localhost:3000']);
  t.equal(code, 2);
  t.same(err.split('\n'), [
    'oncegate: the configuration has 3 faults',
    `${file}:2:3: upstream.tmeout: unknown field; did you mean timeout?`,
    `${file}:3:8: lease: has no unit; write 5s`,
    'URL: upstream.url: must start with http:// or https://; write http://localhost:3000',
    '',
  ]);
  t.match(await inProcess(['serve', '--config', '/nowhere.yaml']), {
    code: 2,
    err: /^oncegate: cannot read the config file/,
  });
});

t.test('what nobody foresaw shows its stack', async (t) => {
  const io = { stdout: { write: () => true }, stderr: { write: (text: string) => (said += text) }, env: {} };
  let said = '';
  t.equal(
    await run(['version'], {
      ...io,
      stdout: {
        write: () => {
          throw new TypeError('surprise');
        },
      },
    }),
    1,
  );
  t.match(said, /^oncegate: surprise\nThis is a bug in oncegate[^]*\n {4}at /);
});

t.test('migrate sql needs no store', async (t) => {
  const { code, out } = await inProcess(['migrate', 'sql']);
  t.equal(code, 0);
  t.match(out, /CREATE TABLE/);
});

t.test('schema: JSON on standard output', async (t) => {
  const { code, out } = await inProcess(['schema']);
  t.equal(code, 0);
  t.match(JSON.parse(out), { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object' });
});
