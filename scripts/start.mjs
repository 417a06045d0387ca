/** `npm start`: makes the clone ready, then runs oncegate with an embedded PostgreSQL. Without an upstream it is the demo. */
import { spawn, spawnSync } from 'node:child_process';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

const { status } = spawnSync(process.execPath, [join(root, 'scripts/setup.mjs'), 'build'], {
  stdio: 'inherit',
});
if (status !== 0) process.exit(status ?? 1);

const given = process.argv.slice(2);
const hasUpstream = given.some((word) => /^https?:/.test(word) || /^--config(=|$)/.test(word));
// Whoever names a store wants that one.
const hasStore = given.some((word) => /^--(embedded|database-url)(=|$)/.test(word));
const args = hasUpstream ? ['serve', ...(hasStore ? [] : ['--embedded']), ...given] : ['demo', ...given];
const child = spawn(process.execPath, [join(root, 'dist/cli/oncegate.js'), ...args], { stdio: 'inherit' });
child.once('error', (error) => {
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
});
child.once('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));

// A terminal sends Ctrl-C to the child as well, which may take a second one for impatience; we only stay to wait for it.
process.on('SIGINT', () => process.stdin.isTTY || child.kill('SIGINT'));
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
