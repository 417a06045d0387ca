/**
 * A stand-in for `node:24-bookworm-slim`, so that the image can be built where no image registry is reached: Debian from
 * its archive, Node and npm from the npm registry, in the places where the official image has them.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildah } from './image-tools.mjs';
import { cacheDir, run } from './steps.mjs';

const suite = 'bookworm';
const packages = { node: `node-linux-${process.arch}@24.21.0`, npm: 'npm@11.19.1' };

/** In the base, where the settings of this machine's npm are found while an image is built; nothing of it stays. */
export const settingsDir = '/mnt';

/** The name of the base image, made unless it is in the cache. */
export function baseImage() {
  const hash = createHash('sha256').update(readFileSync(fileURLToPath(import.meta.url)));
  const name = `localhost/oncegate-base:${hash.digest('hex').slice(0, 12)}`;
  if (buildah('images', '--quiet', '--filter', `reference=${name}`).trim() !== '') return name;
  const dir = mkdtempSync(join(cacheDir, 'base-'));
  try {
    const files = join(dir, 'root');
    run('debootstrap', ['--variant=minbase', suite, files, debianMirror()]);
    for (const path of ['var/cache/apt/archives', 'var/lib/apt/lists', 'var/log'])
      emptyDirectory(join(files, path));
    addNode(dir, files);
    const container = buildah('from', 'scratch').trim();
    buildah('add', '--quiet', container, files, '/');
    buildah('commit', '--quiet', '--rm', container, name);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
  return name;
}

/** The one that this machine's own apt uses, if it is a Debian. */
function debianMirror() {
  const repositories = run('apt-get', ['indextargets', '--format', '$(REPO_URI) $(CODENAME)']).split('\n');
  const line = repositories.find((repository) => repository.endsWith(` ${suite}`));
  return line?.split(' ')[0] ?? 'http://deb.debian.org/debian';
}

function emptyDirectory(path) {
  for (const name of readdirSync(path)) rmSync(join(path, name), { recursive: true });
}

function addNode(dir, files) {
  const tarballs = Object.values(packages).map((name) =>
    run('npm', ['pack', '--silent', name], { cwd: dir }).trim(),
  );
  const local = join(files, 'usr/local');
  const npm = join(local, 'lib/node_modules/npm');
  mkdirSync(npm, { recursive: true });
  const unpack = (tarball, ...args) => run('tar', ['-xzf', join(dir, tarball), ...args]);
  unpack(tarballs[0], '--strip-components=2', '-C', join(local, 'bin'), 'package/bin/node');
  unpack(tarballs[1], '--strip-components=1', '-C', npm);
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(local, 'bin/npm'));
  // npm's built-in settings. The Dockerfile removes npm, and this with it.
  symlinkSync(join(settingsDir, 'npmrc'), join(npm, 'npmrc'));
}
