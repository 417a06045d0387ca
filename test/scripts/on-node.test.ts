import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { closedPort } from '../proxy/pass-through-server.ts';

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function onNode(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      ['scripts/on-node.mjs', ...args],
      { env: { ...process.env, ...env } },
      (_, out, err) => resolve({ code: child.exitCode, out, err }),
    );
  });
}

const ours = String(process.versions.node.split('.')[0]);

t.test('the command and all below it run on that Node.js, and its exit code is handed on', async (t) => {
  const script = `require('child_process').execFileSync('node', ['-p', 'process.version'], { stdio: 'inherit' }); process.exitCode = 3`;
  t.match(await onNode([ours, '--', 'node', '-e', script]), { code: 3, out: `${process.version}\n` });
});

t.test('where it cannot be had: a failure, or a word that it was skipped', async (t) => {
  const cache = mkdtempSync(join(tmpdir(), 'oncegate-on-node-'));
  t.teardown(() => rmSync(cache, { recursive: true }));
  const env = { XDG_CACHE_HOME: cache, npm_config_registry: `http://127.0.0.1:${await closedPort()}` };
  const [failed, skipped] = await Promise.all([
    onNode(['19', '--', 'node', '--version'], env),
    onNode(['--or-skip', '19', '--', 'node', '--version'], env),
  ]);
  t.match(failed, { code: 1, out: '', err: /^Node\.js 19 cannot be had: [^]*ECONNREFUSED/ });
  t.match(skipped, { code: 0, out: 'SKIPPED on Node.js 19: node --version\n' });
});

t.test('misuse', async (t) => {
  for (const args of [[], [ours], ['latest', '--', 'node'], [ours, '--'], [ours, 'npm', '--', 'test']])
    t.match(await onNode(args), { code: 2, err: /^usage: / }, args.join(' '));
});
