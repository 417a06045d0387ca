import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  lchownSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { OncegateError } from '../../errors.ts';
import type { Binaries } from './embedded-binaries.ts';
import { asUser, clusterIn, type Home, notOurs } from './embedded-home.ts';

export interface Cluster {
  readonly dataDir: string;
  readonly logFile: string;
  readonly password: string;
}

/** With a name of its own each time: the initdb of a killed process may still be writing to the last one. */
const UNFINISHED = 'unfinished-cluster-';

/** Nothing of ours: PGDATA, PGPORT and the like in the environment would steer the server. */
export const serverEnv = { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };

/**
 * The cluster with its password, made on the first start. It is built beside its place and renamed when whole, so
 * a start that was killed half-way leaves nothing that could be taken for a cluster. The caller holds the claim.
 */
export async function ensureCluster(home: Home, binaries: Binaries): Promise<Cluster> {
  const place = clusterIn(home.dir);
  if (!existsSync(place)) {
    removeUnfinished(home.dir);
    const unfinished = join(home.dir, `${UNFINISHED}${randomBytes(4).toString('hex')}`);
    try {
      makePassword(unfinished, home);
    } catch (error) {
      throw notOurs(home.dir, error);
    }
    await initdb(unfinished, home, binaries);
    renameSync(unfinished, place);
    sync(home.dir);
  }
  const dataDir = join(place, 'data');
  const major = readOwn(join(dataDir, 'PG_VERSION'), home);
  if (major !== binaries.major) {
    throw new OncegateError(
      'embedded_failed',
      `${place} was made by PostgreSQL ${major}, and the installed package is PostgreSQL ${binaries.major}: install the older package, or move ${place} away to begin with an empty store`,
    );
  }
  return readCluster(home);
}

/** The cluster that is there. */
export function readCluster(home: Home): Cluster {
  const place = clusterIn(home.dir);
  return {
    dataDir: join(place, 'data'),
    logFile: join(place, 'postgres.log'),
    password: readOwn(join(place, 'password'), home),
  };
}

function readOwn(file: string, home: Home): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw notOurs(home.dir, error);
  }
}

/** Best effort: what is left is only in the way of nobody. */
function removeUnfinished(dir: string): void {
  for (const name of readdirSync(dir)) {
    if (!name.startsWith(UNFINISHED)) continue;
    try {
      rmSync(join(dir, name), { recursive: true, force: true });
    } catch {}
  }
}

function makePassword(place: string, { user }: Home): void {
  mkdirSync(place, { mode: 0o700 });
  const file = join(place, 'password');
  const fd = openSync(file, 'wx', 0o600);
  writeSync(fd, randomBytes(24).toString('base64url'));
  fsyncSync(fd);
  closeSync(fd);
  if (!user) return;
  lchownSync(file, user.uid, user.gid);
  lchownSync(place, user.uid, user.gid);
}

async function initdb(place: string, { user }: Home, binaries: Binaries): Promise<void> {
  const options = ['--username=oncegate', `--pwfile=${join(place, 'password')}`, '--auth=scram-sha-256'];
  const locale = ['--encoding=UTF8', '--locale-provider=libc', '--locale=C'];
  const child = spawn(binaries.initdb, ['-D', join(place, 'data'), ...options, ...locale], {
    cwd: place,
    env: serverEnv,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...asUser(user),
  });
  let output = '';
  child.stdout.on('data', (chunk) => (output += chunk));
  child.stderr.on('data', (chunk) => (output += chunk));
  const failure = await new Promise<string | undefined>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => resolve(code === 0 ? undefined : `ended with ${signal ?? code}`));
  });
  if (failure === undefined) return;
  // These binaries are linked with glibc: on Alpine the loader is missing, which the kernel calls ENOENT.
  const hint = failure.includes('ENOENT') ? ' (they need glibc, which Alpine Linux has not)' : '';
  throw new OncegateError(
    'embedded_failed',
    `initdb of the embedded PostgreSQL failed: ${failure}${hint}\n${tail(output)}`,
  );
}

/** The rename is durable only with its directory. */
function sync(dir: string): void {
  const fd = openSync(dir, 'r');
  fsyncSync(fd);
  closeSync(fd);
}

export function tail(text: string): string {
  return text.trimEnd().split('\n').slice(-12).join('\n');
}
