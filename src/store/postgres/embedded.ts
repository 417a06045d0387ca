import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { OncegateError } from '../../errors.ts';
import { type Binaries, placeBinaries, removeOtherBinaries } from './embedded-binaries.ts';
import { claim } from './embedded-claim.ts';
import { type Cluster, ensureCluster } from './embedded-cluster.ts';
import { findHome, type Home, notOurs } from './embedded-home.ts';
import { freePort, launch } from './embedded-launch.ts';
import {
  commandLine,
  findLeftover,
  LOOK_AGAIN_MS,
  lastPort,
  type Postmaster,
  readPidFile,
  stopPostmaster,
} from './embedded-postmaster.ts';
import { CREATE_DATABASE, PING } from './sql/embedded.ts';

/** A start takes 0.2 s; crash recovery after a power cut may take long. */
const READY_WITHIN_MS = 30_000;

export interface EmbeddedServer {
  readonly url: string;
  readonly pid: number;
  /** Fast shutdown, back when the process has ended. May be called twice. */
  stop(): Promise<void>;
}

export interface EmbeddedOptions {
  readonly dataDir: string;
  readonly log: (line: string) => void;
  /** Default: the one of the last start, else any free one. */
  readonly port?: number;
  readonly settings?: Readonly<Record<string, string>>;
}

interface Site {
  readonly home: Home;
  readonly binaries: Binaries;
  readonly cluster: Cluster;
  readonly options: EmbeddedOptions;
}

/**
 * A real PostgreSQL under `dataDir`, for `npm start`, `demo` and `--embedded`. It listens on 127.0.0.1 only, behind a
 * random password. One process owns a directory at a time. A server left by an owner that was killed is adopted.
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedServer> {
  const home = findHome(options.dataDir, options.log);
  const { release } = await claim(home.dir);
  try {
    const binaries = placeBinaries(home.dir);
    const cluster = await ensureCluster(home, binaries);
    const site = { home, binaries, cluster, options };
    return serve(site, (await adopt(site)) ?? (await start(site)), release);
  } catch (error) {
    release();
    throw error instanceof OncegateError ? error : notOurs(home.dir, error);
  }
}

function serve({ cluster, options }: Site, postmaster: Postmaster, release: () => void): EmbeddedServer {
  const { pid, port } = postmaster;
  let stopping: Promise<void> | undefined;
  void postmaster.gone.then((how) => {
    if (!stopping) options.log(`embedded postgresql (process ${pid}) ${how}; its log: ${cluster.logFile}`);
  });
  return {
    url: urlOf(cluster, port, 'oncegate'),
    pid,
    stop: () => (stopping ??= stopPostmaster(cluster, pid).finally(release)),
  };
}

async function adopt({ cluster, binaries, options }: Site): Promise<Postmaster | undefined> {
  const leftover = findLeftover(cluster);
  if (!leftover) return undefined;
  const asWanted =
    commandLine(leftover.pid).startsWith(`${binaries.postgres} `) &&
    (options.port === undefined || options.port === leftover.port);
  if (asWanted && (await isReady(cluster, leftover))) {
    options.log(
      `embedded postgresql (process ${leftover.pid}) was left running by an earlier start and is used again`,
    );
    return leftover;
  }
  await stopPostmaster(cluster, leftover.pid);
  return undefined;
}

async function start({ cluster, binaries, home, options }: Site): Promise<Postmaster> {
  removeOtherBinaries(binaries);
  const until = performance.now() + READY_WITHIN_MS;
  for (let preferred = lastPort(cluster); ; preferred = 0) {
    const port = options.port ?? (await freePort(preferred));
    const launched = await launch(cluster, binaries, {
      port,
      user: home.user,
      settings: options.settings ?? {},
    });
    if (await isReady(cluster, launched)) return launched;
    await stopPostmaster(cluster, launched.pid);
    const said = launched.said();
    // Somebody was quicker to take the port; or the backends of a killed postmaster have not all noticed yet.
    const passes = /shared memory block/.test(said) || (!options.port && /could not bind/.test(said));
    if (!passes || performance.now() > until) {
      throw new OncegateError(
        'embedded_failed',
        `the embedded PostgreSQL did not start on port ${port}; ${cluster.logFile} ends with\n${said}`,
      );
    }
    await delay(LOOK_AGAIN_MS);
  }
}

/** false: it ended, or time was up. */
async function isReady(cluster: Cluster, postmaster: Postmaster): Promise<boolean> {
  const until = performance.now() + READY_WITHIN_MS;
  let ended = false;
  void postmaster.gone.then(() => (ended = true));
  while (!ended && performance.now() < until) {
    const file = readPidFile(cluster);
    // Not before the server itself says so: until then the port could be somebody else's, who would ask for the password.
    if (file?.pid === postmaster.pid && file.ready && (await answers(cluster, postmaster.port))) return true;
    await Promise.race([postmaster.gone, delay(LOOK_AGAIN_MS)]);
  }
  return false;
}

async function answers(cluster: Cluster, port: number): Promise<boolean> {
  try {
    await query(urlOf(cluster, port, 'oncegate'), PING);
    return true;
  } catch (error) {
    const isMissing = (error as { code?: unknown }).code === '3D000';
    if (isMissing) await query(urlOf(cluster, port, 'postgres'), CREATE_DATABASE).catch(() => {});
    return false;
  }
}

async function query(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000 });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query(sql);
  } finally {
    await client.end().catch(() => {});
  }
}

export function urlOf({ password }: Cluster, port: number, database: string): string {
  return `postgres://oncegate:${password}@127.0.0.1:${port}/${database}`;
}
