/** Debian's own tools to build and run an image without a daemon: buildah, runc, debootstrap. */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { canInstall, installPackages, missingTools } from './debian.mjs';
import { attempt, cacheDir, check, run } from './steps.mjs';

const tools = ['buildah', 'runc', 'debootstrap'];
const store = join(cacheDir, 'images');
/** Gigabytes of layers from earlier builds; over that the cache begins anew. */
const maxStoreGb = 8;

export function installTools() {
  check(process.getuid() === 0, 'The image check mounts file systems and starts containers: run it as root.');
  const missing = missingTools(tools);
  check(
    missing.length === 0 || canInstall(),
    `The image check needs ${missing.join(', ')}, and there is no apt-get to install them.`,
  );
  installPackages(missing);
}

let driver;

export function buildah(...args) {
  return run('buildah', [...storeArgs(storageDriver()), ...args]);
}

/** Layers need overlayfs, which a machine inside a container may not have; vfs works anywhere, by copies of everything. */
export function storageDriver() {
  driver ??= attempt('buildah', [...storeArgs('overlay'), 'info']).status === 0 ? 'overlay' : 'vfs';
  return driver;
}

function storeArgs(name) {
  // Named apart, for a store made with one driver cannot be opened with the other.
  const place = join(store, name);
  return ['--storage-driver', name, '--root', join(place, 'root'), '--runroot', join(place, 'run')];
}

/** Layers are kept for the next build, and nothing else would ever remove old ones. */
export function limitStore() {
  if (!existsSync(store)) return;
  const usedGb = Number(run('du', ['-sx', '--block-size=1G', store]).split('\t')[0]);
  if (usedGb <= maxStoreGb) return;
  buildah('rm', '--all');
  buildah('rmi', '--all', '--force');
  rmSync(store, { recursive: true, force: true });
}
