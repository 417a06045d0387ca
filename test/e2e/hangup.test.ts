import { spawn, spawnSync } from 'node:child_process';
import net from 'node:net';
import t, { type Test } from 'tap';
import { send } from '../helpers/client.ts';
import { testDatabase } from '../helpers/postgres.ts';
import { recordOf } from '../helpers/records.ts';
import { type SidecarProcess, sidecarProcess } from '../helpers/sidecar.ts';
import { until } from '../helpers/until.ts';
import { testUpstream } from '../helpers/upstream.ts';
import { closedPort } from '../proxy/pass-through-server.ts';

const said = ({ lines }: SidecarProcess): string[] =>
  lines.filter((line) => line.includes('"signal":"SIGHUP"'));

async function withRequest(t: Test, config = '') {
  const upstream = await testUpstream(t);
  const process = await sidecarProcess(t, { upstream: upstream.url, config });
  const answer = send(process.dataUrl, 'k', { steer: { hold: true } });
  await upstream.received(1);
  return { upstream, process, answer };
}

t.test('SIGHUP: one line says that it is ignored, and it serves on', async (t) => {
  const { upstream, process, answer } = await withRequest(t);
  process.kill('SIGHUP');
  await until('it has said so', () => said(process).length === 1);
  upstream.letGo();
  t.equal((await answer).status, 201);
  t.equal((await send(process.dataUrl, 'another')).status, 201, 'it takes new requests');
  process.kill('SIGTERM');
  t.same(await process.exited, [0, null]);
  t.match(said(process), [/signal ignored: .* restart/]);
});

t.test('workers: a SIGHUP to all of them is one line, and nobody ends', async (t) => {
  const { upstream, process: first, answer } = await withRequest(t, 'workers: 2');
  const pids = first.lines.flatMap((line) => /"pid":(\d+).*"worker serving"/.exec(line)?.[1] ?? []);
  t.equal(pids.length, 2);
  for (const pid of pids) process.kill(Number(pid), 'SIGHUP');
  first.kill('SIGHUP');
  await until('it has said so', () => said(first).length > 0);
  upstream.letGo();
  t.equal((await answer).status, 201);
  first.kill('SIGTERM');
  t.same(await first.exited, [0, null]);
  t.equal(said(first).length, 1);
  t.notOk(first.lines.some((line) => line.includes('another takes its place')));
});

/** Runs a command in a pseudo-terminal; part of util-linux. */
const terminal = 'script';
const hasScript = spawnSync(terminal, ['--version']).status === 0;

async function accepts(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => resolve(socket.destroy() !== null));
    socket.once('error', () => resolve(false));
  });
}

t.test(
  'a terminal that is closed: what runs is answered, and it ends',
  { skip: hasScript ? false : `${terminal} is not installed` },
  async (t) => {
    for (const workers of [1, 2]) {
      const upstream = await testUpstream(t);
      const { url: databaseUrl } = await testDatabase(t);
      const port = await closedPort();
      const line = `exec ${process.execPath} --import=tsx src/cli/oncegate.ts serve ${upstream.url} --listen 127.0.0.1:${port} --ops-listen 127.0.0.1:0`;
      // Its standard input stays open: `script` would send an end of file on.
      const window = spawn(terminal, ['-qec', line, '/dev/null'], {
        stdio: ['pipe', 'pipe', 'inherit'],
        env: {
          PATH: process.env['PATH'],
          DATABASE_URL: databaseUrl,
          ONCEGATE_STORE_MIGRATE: 'auto',
          ONCEGATE_WORKERS: String(workers),
          ONCEGATE_DRAIN_DELAY: '5m',
        },
      });
      t.teardown(() => window.kill('SIGKILL'));
      let shown = '';
      window.stdout.on('data', (chunk) => (shown += String(chunk)));
      await until(`it serves: ${shown}`, () => / serving\r?\n/.test(shown));
      const answer = send(`http://127.0.0.1:${port}/a`, 'k', { steer: { hold: true } });
      await upstream.received(1);
      window.kill('SIGKILL');
      await until(
        'it takes no new connections, for no load balancer must notice',
        async () => !(await accepts(port)),
      );
      upstream.letGo();
      t.equal((await answer).status, 201, `${workers} workers`);
      t.equal((await recordOf(databaseUrl, 'k'))?.['state'], 'completed');
    }
  },
);
