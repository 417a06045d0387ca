import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { requireStore } from '../../src/cli/require-store.ts';
import { compilePolicies } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { type Running, start } from '../../src/main.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { type Teardown, testDatabase } from './postgres.ts';

export interface SidecarOptions {
  /** Default: a fresh database. */
  readonly databaseUrl?: string;
  readonly upstream: string;
  /** Of the data port, in this process; default: any port of 127.0.0.1. */
  readonly listen?: string;
  /** More YAML, at the top level. */
  readonly config?: string;
  /** Of a process of its own: beats the config. */
  readonly env?: NodeJS.ProcessEnv;
  /** `dropped`: once it serves, its lines are read and forgotten, for a million of them would fill our memory. */
  readonly log?: 'kept' | 'dropped';
}

export interface Sidecar extends Running {
  readonly databaseUrl: string;
  /** Log lines as they were written. */
  readonly lines: string[];
}

const anyPort = '127.0.0.1:0';

/** No load balancer has to hear of a test's end. */
const quickDrain = { ONCEGATE_DRAIN_DELAY: '0s' };

/** A sidecar in this process, on real sockets and a real database. Drained when the test ends. */
export async function sidecar(t: Teardown, options: SidecarOptions): Promise<Sidecar> {
  const databaseUrl = options.databaseUrl ?? (await testDatabase(t)).url;
  const flags = [
    { from: 'test', path: ['upstream', 'url'], value: options.upstream },
    { from: 'test', path: ['listen', 'data'], value: options.listen ?? anyPort },
    { from: 'test', path: ['listen', 'ops'], value: anyPort },
    { from: 'test', path: ['store', 'url'], value: databaseUrl },
    { from: 'test', path: ['store', 'migrate'], value: 'auto' },
  ];
  const config = loadConfig({ text: options.config ?? '', flags, env: quickDrain });
  const lines: string[] = [];
  const log = createLogger('debug', { write: (line) => void lines.push(line) });
  const policies = compilePolicies(config);
  const running = await start({ config, policies, storeTarget: requireStore(config.store), log });
  t.teardown(() => running.drain(true));
  return { ...running, databaseUrl, lines };
}

export interface SidecarProcess {
  readonly dataUrl: string;
  readonly opsUrl: string;
  readonly databaseUrl: string;
  readonly lines: string[];
  readonly child: ChildProcess;
  readonly exited: Promise<[code: number | null, signal: NodeJS.Signals | null]>;
  kill(signal: NodeJS.Signals): void;
}

/** A sidecar in a process of its own, started by its command, for tests that kill it. */
export async function sidecarProcess(t: Teardown, options: SidecarOptions): Promise<SidecarProcess> {
  const databaseUrl = options.databaseUrl ?? (await testDatabase(t)).url;
  const dir = mkdtempSync(join(tmpdir(), 'oncegate-config-'));
  const file = join(dir, 'config.yaml');
  writeFileSync(file, options.config ?? '');
  const where = ['--listen', anyPort, '--ops-listen', anyPort, '--config', file];
  const child = spawn(
    process.execPath,
    ['--import=tsx', 'src/cli/oncegate.ts', 'serve', options.upstream, ...where],
    {
      env: {
        ...process.env,
        ...quickDrain,
        DATABASE_URL: databaseUrl,
        ONCEGATE_STORE_MIGRATE: 'auto',
        ...options.env,
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const exited = once(child, 'exit') as SidecarProcess['exited'];
  t.teardown(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await exited;
    rmSync(dir, { recursive: true });
  });
  const lines: string[] = [];
  const { data, ops } = await new Promise<{ data: string; ops: string }>((resolve, reject) => {
    const output = child.stdout as NodeJS.ReadableStream;
    const reader = createInterface({ input: output }).on('line', (line) => {
      lines.push(line);
      const said = JSON.parse(line) as { msg?: string; data: string; ops: string };
      if (said.msg !== 'serving') return;
      resolve(said);
      if (options.log !== 'dropped') return;
      reader.close();
      output.resume();
    });
    exited.then(
      ([code]) => reject(new Error(`ended with ${code} before it served:\n${lines.join('\n')}`)),
      reject,
    );
  });
  return {
    dataUrl: data,
    opsUrl: ops,
    databaseUrl,
    lines,
    child,
    exited,
    kill: (signal) => void child.kill(signal),
  };
}
