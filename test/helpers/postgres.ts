import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { type EmbeddedServer, startEmbedded } from '../../src/store/postgres/embedded.ts';

/** What we need of tap's `t`. */
export interface Teardown {
  teardown(fn: () => unknown): unknown;
}

/** Test files run in parallel on one server, each with pools of its own. */
const settings = { max_connections: '300' };

/** A directory that the server's user can reach too, when tests run as root. It goes with this process at the latest. */
export function serverDir(t?: Teardown): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), 'oncegate-test-')));
  chmodSync(dir, 0o755);
  cleanUpAfterUs(dir);
  t?.teardown(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** One server for a whole run; scripts/test.mjs starts it and names it in ONCEGATE_TEST_SERVER. */
export async function startTestServer(): Promise<EmbeddedServer> {
  const dataDir = serverDir();
  const server = await startEmbedded({ dataDir, settings, log: () => {} });
  const stop = async () => {
    await server.stop();
    rmSync(dataDir, { recursive: true, force: true });
  };
  return { ...server, stop };
}

let shared: Promise<EmbeddedServer> | undefined;

/** A fresh, empty database of this test's own; through a pooler in a run with `--pgbouncer`. */
export async function testDatabase(t: Teardown): Promise<{ url: string }> {
  const server = process.env['ONCEGATE_TEST_SERVER'] ?? (await (shared ??= startTestServer())).url;
  const name = `test_${randomBytes(6).toString('hex')}`;
  await query(server, `CREATE DATABASE ${name}`);
  t.teardown(() => query(server, `DROP DATABASE ${name} WITH (FORCE)`));
  const url = new URL(process.env['ONCEGATE_TEST_POOLER'] ?? server);
  url.pathname = `/${name}`;
  return { url: url.href };
}

export interface OwnServer {
  readonly url: string;
  readonly port: number;
  /** `immediate` is a crash: nothing is written, the next start recovers. */
  stop(mode?: 'fast' | 'immediate'): Promise<void>;
  /** On the same port and directory. */
  start(): Promise<void>;
}

/** A server that this test may stop and start as it likes. */
export async function ownServer(t: Teardown): Promise<OwnServer> {
  const dataDir = serverDir();
  let server = await startEmbedded({ dataDir, settings, log: () => {} });
  t.teardown(async () => {
    await server.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const port = Number(new URL(server.url).port);
  return {
    url: server.url,
    port,
    async stop(mode = 'fast') {
      if (mode === 'immediate') process.kill(server.pid, 'SIGQUIT');
      await server.stop();
    },
    async start() {
      server = await startEmbedded({ dataDir, settings, port, log: () => {} });
    },
  };
}

export async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  try {
    await client.connect();
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

/**
 * The server outlives its owner by design, and a test process may be killed at any time. This small shell notices by
 * the end of its input that we have gone, in whatever way, then stops what serves the directory and removes it.
 */
function cleanUpAfterUs(dataDir: string): void {
  const script = `
    cat >/dev/null
    pid=$(head -n 1 "$0/cluster/data/postmaster.pid" 2>/dev/null)
    serves() { ps -ww -o command= -p "$pid" 2>/dev/null | grep -qF -- "-D $0/"; }
    [ -n "$pid" ] && serves && kill -INT "$pid"
    while [ -n "$pid" ] && serves; do sleep 0.1; done
    rm -rf "$0" || { sleep 1; rm -rf "$0"; }`;
  const child = spawn('/bin/sh', ['-c', script, dataDir], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  child.unref();
  // A pipe made by spawn is a socket, which its type does not say.
  (child.stdin as unknown as { unref(): void }).unref();
}
