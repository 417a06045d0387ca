import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import t from 'tap';
import { loadConfig } from '../../src/config/load.ts';
import { serverDir } from '../helpers/postgres.ts';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
const marked = /<!-- run by test\/docs\/readme\.test\.ts -->\n```sh\n([\s\S]*?)```/.exec(readme)?.[1] ?? '';
const commands = marked.trim().split('\n');
const hasCurl = spawnSync('curl', ['--version']).status === 0;

t.test('the README is short', async (t) => {
  t.ok(readme.split('\n').length < 150);
});

t.test('its config is legal and has nothing to warn of', async (t) => {
  const text = /```yaml\n([\s\S]*?)```/.exec(readme)?.[1] ?? '';
  const config = loadConfig({ text, env: { DATABASE_URL: 'postgres://h/d' } });
  t.same(config.warnings, []);
  t.match(config.store, { kind: 'external', migrate: 'auto' });
  t.match(config.routes, [{ route: '/v1/charges', outcomes: { preset: 'payments' } }]);
});

t.test('the tarball is called as npm calls it', async (t) => {
  const { name, version } = JSON.parse(readFileSync('package.json', 'utf8')) as Record<string, string>;
  t.match(readme, `${name}-${version}.tgz`);
});

t.test(
  'the commands of the README end in a replay',
  { skip: hasCurl ? false : 'curl is not installed' },
  async (t) => {
    const args = [
      'demo',
      '--listen',
      '127.0.0.1:0',
      '--ops-listen',
      '127.0.0.1:0',
      '--data-dir',
      serverDir(t),
    ];
    const demo = spawn(process.execPath, ['--import=tsx', 'src/cli/oncegate.ts', ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const exited = once(demo, 'exit');
    t.teardown(() => demo.kill('SIGKILL'));
    let said = '';
    await new Promise<void>((resolve) => {
      demo.stdout.on('data', (chunk) => {
        said += String(chunk);
        if (said.includes('Stop: Ctrl-C')) resolve();
      });
    });
    const url = /stands at (\S+)/.exec(said)?.[1] ?? '';
    t.match(said, 'curl -i', 'the demo prints what to try');

    t.equal(commands.length, 2);
    const answers: string[] = [];
    for (const command of commands) {
      const { stdout } = await promisify(execFile)('sh', [
        '-c',
        command.replace('http://127.0.0.1:8080', url),
      ]);
      answers.push(stdout);
    }
    t.match(answers[0], /^HTTP\/1\.1 201 Created[\s\S]*Idempotency-Status: executed/);
    t.match(answers[1], /^HTTP\/1\.1 201 Created[\s\S]*Idempotent-Replayed: true/);
    t.equal(answers[1]?.split('\r\n\r\n')[1], answers[0]?.split('\r\n\r\n')[1]);
    demo.kill('SIGINT');
    t.same(await exited, [0, null], 'Ctrl-C ends it in good order');
  },
);
