import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { asError, OncegateError } from '../../errors.ts';

/** PostgreSQL refuses to run as root; undefined: run it as ourselves. */
export type ServerUser = { readonly uid: number; readonly gid: number } | undefined;

export interface Home {
  readonly dir: string;
  readonly user: ServerUser;
}

/** The cluster and its password: one directory, so that one rename makes it exist (embedded-cluster.ts). */
export const clusterIn = (dir: string): string => join(dir, 'cluster');

/**
 * Decides where the server's files live and as whom it runs. As root it runs as the directory's owner, or as `nobody`
 * where that is root; if that user cannot get there (a 0700 home), the files live elsewhere, always in the same place
 * for the same wanted path. A place that already holds a cluster wins: the store must never turn empty by itself.
 */
export function findHome(wantedDir: string, log: (line: string) => void): Home {
  const wanted = resolve(wantedDir);
  if (process.getuid?.() !== 0) {
    makeDirectory(wanted, 0o700);
    return { dir: realpathSync(wanted), user: undefined };
  }
  const elsewhere = elsewhereFor(wanted);
  if (existsSync(clusterIn(wanted))) {
    const home = rootHome(wanted);
    if (home) return home;
    throw new OncegateError(
      'embedded_failed',
      `${wanted} holds a database, but its user (uid ${userOf(wanted).uid}) cannot reach it any more: give that user search permission (chmod o+x) on the directories above it`,
    );
  }
  const used = elsewhere.find((dir) => existsSync(clusterIn(dir)));
  const home = used === undefined ? rootHome(wanted) : undefined;
  if (home) return home;
  for (const dir of used === undefined ? elsewhere : [used]) {
    const other = rootHome(dir, { ownedByRoot: true });
    if (!other) continue;
    log(
      used === undefined
        ? `embedded postgresql keeps its data in ${dir}: under root it runs as uid ${other.user?.uid}, which cannot reach ${wanted}`
        : `embedded postgresql keeps its data in ${dir}, where an earlier start put it instead of ${wanted}`,
    );
    return other;
  }
  throw new OncegateError(
    'embedded_failed',
    `no directory that a user other than root can reach (tried ${[wanted, ...elsewhere].join(', ')}): set store.dataDir to one, or use --database-url`,
  );
}

/** Whether a store was ever made for this wanted directory, wherever it was put. Makes nothing. */
export function holdsCluster(wantedDir: string): boolean {
  const wanted = resolve(wantedDir);
  return [wanted, ...elsewhereFor(wanted)].some(isThere);
}

/** A directory that we may not look into is no empty one. */
function isThere(dir: string): boolean {
  try {
    return statSync(clusterIn(dir), { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    throw notOurs(dir, error);
  }
}

/** Where the files go, as root, when the server's user cannot reach the wanted directory. */
function elsewhereFor(wanted: string): readonly string[] {
  if (process.getuid?.() !== 0) return [];
  const hash = createHash('sha256').update(wanted).digest('hex').slice(0, 12);
  return [`/var/lib/oncegate/${hash}`, join(tmpdir(), `oncegate-${hash}`)];
}

/** undefined: the server's user cannot reach `dir`; what was made to find that out is removed again. */
function rootHome(dir: string, { ownedByRoot = false } = {}): Home | undefined {
  const made = makeDirectory(dir, 0o755);
  // In a shared /tmp somebody else may have made the directory first, to own what we put there.
  const trusted = !ownedByRoot || (lstatSync(dir).isDirectory() && lstatSync(dir).uid === 0);
  const user = userOf(dir);
  if (trusted && canReach(user, dir)) return { dir: realpathSync(dir), user };
  if (made !== undefined) rmSync(made, { recursive: true, force: true });
  return undefined;
}

/** With a fixed umask: a directory made 0700 by root's own habits would shut the server's user out. */
function makeDirectory(dir: string, mode: number): string | undefined {
  const umask = process.umask(0o022);
  try {
    return mkdirSync(dir, { recursive: true, mode });
  } catch (error) {
    throw notOurs(dir, error);
  } finally {
    process.umask(umask);
  }
}

function canReach(user: NonNullable<ServerUser>, dir: string): boolean {
  const tried = spawnSync('/bin/sh', ['-c', 'cd -- "$0"', dir], {
    cwd: '/',
    stdio: 'ignore',
    ...asUser(user),
  });
  if (!tried.error) return tried.status === 0;
  throw new OncegateError(
    'embedded_failed',
    'PostgreSQL refuses to run as root, and this process may not change to another user: start oncegate as a normal user',
    { cause: tried.error },
  );
}

function userOf(dir: string): NonNullable<ServerUser> {
  const { uid, gid } = lstatSync(dir);
  return uid === 0 ? nobody() : { uid, gid };
}

function nobody(): NonNullable<ServerUser> {
  const line = /^nobody:[^:]*:(-?\d+):(-?\d+):/m.exec(readFileSync('/etc/passwd', 'utf8'));
  // macOS writes -2, chown(2) wants it unsigned.
  return { uid: Number(line?.[1] ?? 65534) >>> 0, gid: Number(line?.[2] ?? 65534) >>> 0 };
}

/** For spawn, whose ids are signed. */
export function asUser(user: ServerUser): { uid?: number; gid?: number } {
  return user ? { uid: user.uid | 0, gid: user.gid | 0 } : {};
}

/** The usual reason for a refused write: an earlier start by root, or by another user. */
export function notOurs(dir: string, error: unknown): OncegateError {
  const { code } = error as NodeJS.ErrnoException;
  const text =
    code === 'EACCES' || code === 'EPERM'
      ? `cannot use ${dir}, which belongs to another user (was oncegate started there as root before?): start it as that user, give the directory to this one (chown -R), or choose another store.dataDir`
      : `cannot use ${dir} for the embedded PostgreSQL: ${asError(error).message}`;
  return new OncegateError('embedded_failed', text, { cause: error });
}
