import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import type { Teardown } from '../test/helpers/postgres.ts';
import { type TcpProxy, tcpProxy } from '../test/helpers/tcp-proxy.ts';
import { until } from '../test/helpers/until.ts';
import { configOf } from './policies.ts';

/** For the saboteur: where to stand still, the next time it gets there. */
export interface Order {
  readonly point: string;
  readonly detail: string;
}

export interface ReplicaOptions {
  readonly index: number;
  readonly databaseUrl: string;
  readonly upstreamPort: number;
}

const root = join(import.meta.dirname, '..');
const saboteur = pathToFileURL(join(import.meta.dirname, 'saboteur.mjs')).href;
const anyPort = '127.0.0.1:0';
const keptLines = 300;

/** One sidecar, started by its command, with a fault proxy on each of its lines. The lines outlive the process. */
export class Replica {
  readonly index: number;
  readonly lines: Readonly<Record<'postgres' | 'upstream' | 'narrow' | 'clients', TcpProxy>>;
  readonly configFile: string;
  /** What it said last. */
  readonly said: string[] = [];
  readonly #clientsTarget: { host: string; port: number };
  readonly #databaseUrl: string;
  #child: ChildProcess | null = null;
  #exited: Promise<unknown> = Promise.resolve();
  #orders = 0;
  readonly #waiting = new Map<string, () => void>();

  private constructor(
    options: ReplicaOptions,
    lines: Replica['lines'],
    target: { host: string; port: number },
    dir: string,
  ) {
    this.index = options.index;
    this.lines = lines;
    this.#clientsTarget = target;
    this.#databaseUrl = lines.postgres.through(options.databaseUrl);
    this.configFile = join(dir, 'config.yaml');
    const upstream = `http://127.0.0.1:${lines.upstream.port}`;
    const narrowUpstream = `http://127.0.0.1:${lines.narrow.port}`;
    writeFileSync(this.configFile, configOf(options.index, { upstream, narrowUpstream }));
  }

  static async start(t: Teardown, options: ReplicaOptions): Promise<Replica> {
    const host = '127.0.0.1';
    const target = { host, port: 1 };
    const database = new URL(options.databaseUrl);
    const lines = {
      postgres: await tcpProxy(t, { host, port: Number(database.port) }),
      upstream: await tcpProxy(t, { host, port: options.upstreamPort }),
      narrow: await tcpProxy(t, { host, port: options.upstreamPort }),
      clients: await tcpProxy(t, target),
    };
    const dir = mkdtempSync(join(tmpdir(), 'oncegate-torture-'));
    const replica = new Replica(options, lines, target, dir);
    t.teardown(async () => {
      await replica.kill('SIGKILL');
      rmSync(dir, { recursive: true });
    });
    await replica.start();
    return replica;
  }

  get url(): string {
    return `http://127.0.0.1:${this.lines.clients.port}`;
  }

  get isRunning(): boolean {
    return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  async start(): Promise<void> {
    const where = ['--listen', anyPort, '--ops-listen', anyPort, '--config', this.configFile];
    const command = ['--import', saboteur, 'dist/cli/oncegate.js', 'serve', ...where];
    const child = spawn(process.execPath, command, {
      cwd: root,
      env: { PATH: process.env['PATH'], DATABASE_URL: this.#databaseUrl },
      stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
      // Ctrl-C is for us alone.
      detached: true,
    });
    this.#child = child;
    this.#exited = once(child, 'exit');
    for (const stream of [3, 4]) child.stdio[stream]?.on('error', () => {});
    linesOf(child.stdio[4] as Readable, (line) => this.#onReport(line));
    linesOf(child.stderr as Readable, (line) => this.#keep(line));
    linesOf(child.stdout as Readable, (line) => {
      this.#keep(line);
      if (!line.includes('"msg":"serving"')) return;
      this.#clientsTarget.port = Number(new URL((JSON.parse(line) as { data: string }).data).port);
      this.#waiting.get('serving')?.();
    });
    const served = new Promise<void>((resolve) => this.#waiting.set('serving', resolve));
    const ended = this.#exited.then(() => {
      throw new Error(`sidecar ended before it served:\n${this.said.slice(-10).join('\n')}`);
    });
    ended.catch(() => {});
    await Promise.race([served, ended]);
  }

  /** Resolves when it has ended, or, for the others, when it was sent. */
  async kill(signal: NodeJS.Signals): Promise<void> {
    if (!this.isRunning) return;
    this.#child?.kill(signal);
    if (signal === 'SIGKILL') await this.#exited;
    if (signal === 'SIGSTOP') await this.asleep();
  }

  exited(): Promise<unknown> {
    return this.#exited;
  }

  async asleep(): Promise<void> {
    await until('it sleeps', () => stateOf(this.#child?.pid ?? 0) === 'T');
  }

  /** Resolves once it is armed; `reached` then says when the point was. In an object, for awaiting one would await both. */
  async arm(order: Order): Promise<{ readonly reached: Promise<void> }> {
    const id = ++this.#orders;
    const reached = new Promise<void>((resolve) => this.#waiting.set(`reached ${id}`, resolve));
    const armed = new Promise<void>((resolve) => this.#waiting.set(`armed ${id}`, resolve));
    this.#pipe(3).write(`${JSON.stringify({ id, ...order })}\n`);
    await armed;
    return { reached };
  }

  /** It was blocked at a point: now it goes on. */
  letGo(): void {
    this.#pipe(4).write('.');
  }

  #pipe(fd: 3 | 4): Writable {
    if (this.#child === null) throw new Error('it was never started');
    return this.#child.stdio[fd] as Writable;
  }

  #onReport(line: string): void {
    const { kind, id } = JSON.parse(line) as { kind: string; id: number };
    const name = `${kind} ${id}`;
    this.#waiting.get(name)?.();
    this.#waiting.delete(name);
  }

  #keep(line: string): void {
    this.said.push(line);
    if (this.said.length > keptLines) this.said.shift();
    if (line.includes('"msg":"draining"')) this.#waiting.get('draining')?.();
  }

  /** SIGTERM; resolves when it has said that it drains. */
  async drain(): Promise<void> {
    const draining = new Promise<void>((resolve) => this.#waiting.set('draining', resolve));
    this.#child?.kill('SIGTERM');
    await draining;
  }
}

function linesOf(input: Readable, onLine: (line: string) => void): void {
  createInterface({ input })
    .on('line', onLine)
    // Killed with something of ours unread: its end of the pipe is reset.
    .on('error', () => {});
}

/** proc_pid_stat(5): the third field, after the name in parentheses. */
function stateOf(pid: number): string {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  return text.slice(text.lastIndexOf(')') + 2, text.lastIndexOf(')') + 3);
}
