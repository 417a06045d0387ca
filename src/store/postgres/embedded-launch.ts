import { spawn } from 'node:child_process';
import { existsSync, readFileSync, renameSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { OncegateError } from '../../errors.ts';
import type { Binaries } from './embedded-binaries.ts';
import { type Cluster, serverEnv, tail } from './embedded-cluster.ts';
import { asUser, type ServerUser } from './embedded-home.ts';
import type { Postmaster } from './embedded-postmaster.ts';

const MAX_LOG_BYTES = 10_000_000;

/** Safe on any machine, small when idle, and not to be weakened by a postgresql.conf that somebody edited. */
const baseSettings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  shared_buffers: '32MB',
  log_checkpoints: 'off',
  io_method: 'sync', // without its three I/O workers
  max_logical_replication_workers: '0', // without its launcher
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_error_verbosity: 'terse', // DETAIL holds key values
};

interface Launch {
  readonly port: number;
  readonly user: ServerUser;
  readonly settings: Readonly<Record<string, string>>;
}

interface Launched extends Postmaster {
  /** The end of what this server wrote to its log, for an error message. */
  readonly said: () => string;
}

/** Starts a server that outlives us. It may not be ready, nor even stay: watch `gone`. */
export async function launch(cluster: Cluster, binaries: Binaries, options: Launch): Promise<Launched> {
  const logged = rotate(cluster.logFile);
  const settings = { ...baseSettings, ...options.settings, port: String(options.port) };
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const command = [binaries.postgres, '-D', cluster.dataDir, ...flags];
  // The shell opens the log as the server's user: root should not write through a path that this user controls.
  const child = spawn('/bin/sh', ['-c', 'umask 077; exec "$@" >>"$0" 2>&1', cluster.logFile, ...command], {
    cwd: cluster.dataDir,
    env: serverEnv,
    stdio: 'ignore',
    detached: true, // a process group of its own: Ctrl-C must not stop it before our last write
    ...asUser(options.user),
  });
  const gone = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ? `killed by ${signal}` : `ended with code ${code}`));
    child.once('error', (error) => resolve(error.message));
  });
  child.unref();
  if (child.pid === undefined) {
    throw new OncegateError('embedded_failed', `cannot start the embedded PostgreSQL: ${await gone}`);
  }
  const said = () => tail(readFileSync(cluster.logFile).subarray(logged).toString('utf8'));
  return { pid: child.pid, port: options.port, gone, said };
}

/** How many bytes of the log are of earlier starts. */
function rotate(logFile: string): number {
  if (!existsSync(logFile)) return 0;
  const { size } = statSync(logFile);
  if (size <= MAX_LOG_BYTES) return size;
  renameSync(logFile, `${logFile}.old`);
  return 0;
}

/** `preferred` if nobody has it, else one that is free at this moment. */
export async function freePort(preferred: number): Promise<number> {
  return (await bind(preferred)) ?? (await bind(0)) ?? 0;
}

function bind(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' ? address?.port : undefined));
    });
  });
}
