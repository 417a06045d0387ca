import { spawn } from 'node:child_process';
import { once } from 'node:events';
import t from 'tap';
import { serverDir } from '../helpers/postgres.ts';
import { until } from '../helpers/until.ts';

t.test('npm start: a SIGTERM to npm stops the demo, and leaves nothing that holds its ports', async (t) => {
  const any = '127.0.0.1:0';
  const args = ['start', '--', '--listen', any, '--ops-listen', any, '--data-dir', serverDir(t)];
  // A process group of its own: what npm would leave behind is found by it.
  const npm = spawn('npm', args, { stdio: ['ignore', 'pipe', 'inherit'], detached: true });
  t.teardown(() => {
    try {
      process.kill(-Number(npm.pid), 'SIGKILL');
    } catch {} // all of it is gone
  });
  const exited = once(npm, 'exit');
  let said = '';
  npm.stdout.on('data', (chunk) => (said += String(chunk)));
  await until('it serves', () => said.includes('requests 0'));
  npm.kill('SIGTERM');
  t.same(await exited, [0, null]);
  t.match(said, /\nStopped\.\n$/);
});
