import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { closedPort } from '../proxy/pass-through-server.ts';
import { until } from './until.ts';

export interface Pooler {
  /** The same database through the pooler. */
  through(url: string): string;
  readonly pid: number;
  stop(): Promise<void>;
}

export const hasPgbouncer = spawnSync('pgbouncer', ['--version']).status === 0;

/** PgBouncer in transaction mode before a server: the next statement of a connection may meet another server process. */
export async function startPgbouncer(serverUrl: string): Promise<Pooler> {
  const { hostname, port, username } = new URL(serverUrl);
  const dir = mkdtempSync(join(tmpdir(), 'oncegate-pgbouncer-'));
  chmodSync(dir, 0o777);
  const listenPort = await closedPort();
  const { password } = new URL(serverUrl);
  writeFileSync(join(dir, 'users.txt'), `"${username}" "${decodeURIComponent(password)}"\n`);
  writeFileSync(
    join(dir, 'pgbouncer.ini'),
    `[databases]
* = host=${hostname} port=${port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = plain
auth_file = ${join(dir, 'users.txt')}
pool_mode = transaction
max_client_conn = 2000
default_pool_size = 4
server_round_robin = 1
`,
  );
  // It refuses to be root.
  const asUser = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
  const child = spawn('pgbouncer', ['-q', ...asUser, join(dir, 'pgbouncer.ini')], { stdio: 'ignore' });
  const exited = once(child, 'exit');
  await until('PgBouncer listens', () => canConnect(listenPort));
  return {
    pid: child.pid ?? 0,
    through: (url) => {
      const pooled = new URL(url);
      pooled.host = `127.0.0.1:${listenPort}`;
      return pooled.href;
    },
    stop: async () => {
      child.kill('SIGKILL');
      await exited;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

function canConnect(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}
