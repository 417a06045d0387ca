import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, lchownSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../src/store/postgres/embedded-launch.ts';
import { query, serverDir, type Teardown } from '../test/helpers/postgres.ts';
import { until } from '../test/helpers/until.ts';
import { serverUser } from './debian-binaries.ts';

/** Beyond the defaults: what comes before a failover must be as durable as in earnest, and nothing may be slow for show. */
const conf = `
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
dynamic_shared_memory_type = mmap
shared_buffers = 32MB
max_connections = 100
synchronous_commit = on
wal_retrieve_retry_interval = 100ms
log_error_verbosity = terse
`;

/** A server that may be killed and made anew in the same place. */
export class DebianServer {
  readonly port: number;
  readonly url: string;
  readonly #dir: string;
  readonly #bin: string;
  readonly #user = serverUser();
  #pid: number | null = null;
  #gone: Promise<unknown> = Promise.resolve();

  private constructor(dir: string, bin: string, port: number) {
    this.#dir = dir;
    this.#bin = bin;
    this.port = port;
    this.url = `postgres://oncegate@127.0.0.1:${port}/postgres`;
  }

  static async make(t: Teardown, bin: string): Promise<DebianServer> {
    // Whatever becomes of this process, what serves `cluster/data` is stopped and the directory removed.
    const dir = serverDir(t);
    const server = new DebianServer(dir, bin, await freePort(0));
    t.teardown(async () => {
      await server.kill('SIGQUIT');
      server.#clear();
    });
    return server;
  }

  get #data(): string {
    return join(this.#dir, 'cluster/data');
  }

  async init(): Promise<void> {
    this.#clear();
    await this.#run('initdb', [
      '-D',
      this.#data,
      '-A',
      'trust',
      '-U',
      'oncegate',
      '-E',
      'UTF8',
      '--no-locale',
    ]);
    appendFileSync(join(this.#data, 'postgresql.conf'), conf);
  }

  /** As a standby of whatever listens on `primaryPort`. */
  async initFrom(primaryPort: number): Promise<void> {
    this.#clear();
    const from = ['-h', '127.0.0.1', '-p', String(primaryPort), '-U', 'oncegate'];
    await this.#run('pg_basebackup', [...from, '-D', this.#data, '-R', '-c', 'fast', '--no-sync']);
    // Once promoted it has no standby of its own yet, and would wait for one for ever.
    appendFileSync(join(this.#data, 'postgresql.auto.conf'), `synchronous_standby_names = ''\n`);
  }

  async start(): Promise<void> {
    const command = [join(this.#bin, 'postgres'), '-D', this.#data, '-c', `port=${this.port}`];
    const log = join(this.#dir, 'cluster/log');
    const child = spawn('/bin/sh', ['-c', 'exec "$@" >>"$0" 2>&1', log, ...command], {
      cwd: this.#dir,
      stdio: 'ignore',
      // Ctrl-C must not reach it before the sidecars.
      detached: true,
      ...this.#user,
    });
    this.#pid = child.pid ?? null;
    this.#gone = once(child, 'exit');
    await until(`PostgreSQL on port ${this.port}`, () =>
      query(this.url, 'SELECT 1').then(
        () => true,
        () => false,
      ),
    );
  }

  /** SIGKILL: as when the machine is lost, all its processes at once. SIGQUIT: an immediate stop, which tells its clients. */
  async kill(signal: 'SIGKILL' | 'SIGQUIT'): Promise<void> {
    const pid = this.#pid;
    if (pid === null) return;
    this.#pid = null;
    const pids = [pid, ...(signal === 'SIGKILL' ? childrenOf(pid) : [])];
    for (const one of pids) sendTo(one, signal);
    await this.#gone;
  }

  /** A killed server leaves its memory segment behind, named in line 7 of its pid file. */
  #clear(): void {
    const pidFile = join(this.#data, 'postmaster.pid');
    const segment = existsSync(pidFile) ? readFileSync(pidFile, 'utf8').split('\n')[6]?.trim() : undefined;
    const id = segment?.split(/\s+/)[1];
    if (id !== undefined) spawnSync('ipcrm', ['-m', id]);
    rmSync(this.#data, { recursive: true, force: true });
    const parent = join(this.#dir, 'cluster');
    mkdirSync(parent, { recursive: true });
    if (this.#user !== undefined) lchownSync(parent, this.#user.uid, this.#user.gid);
  }

  async #run(program: string, args: readonly string[]): Promise<void> {
    const child = spawn(join(this.#bin, program), args, {
      cwd: this.#dir,
      stdio: ['ignore', 'ignore', 'pipe'],
      ...this.#user,
    });
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
    const [code] = (await once(child, 'close')) as [number | null];
    if (code !== 0) throw new Error(`${program} ended with ${code}: ${said.trim()}`);
  }
}

function childrenOf(pid: number): number[] {
  const { stdout } = spawnSync('ps', ['-o', 'pid=', '--ppid', String(pid)], { encoding: 'utf8' });
  return stdout.trim().split(/\s+/).filter(Boolean).map(Number);
}

function sendTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
