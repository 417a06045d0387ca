import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { baseImage, settingsDir } from './image-base.mjs';
import { buildah, storageDriver } from './image-tools.mjs';
import { cacheDir, root, run } from './steps.mjs';

/** What a target of the Dockerfile says about itself, with its name in the store. */
export function buildImage(target, base = baseImage()) {
  const name = `localhost/${target}:check`;
  const settings = npmSettings();
  try {
    buildah(
      'bud',
      '--isolation=chroot',
      // Kept for the next build; as copies they would take minutes and gigabytes.
      `--layers=${storageDriver() === 'overlay'}`,
      // OCI's own format has no HEALTHCHECK.
      '--format=docker',
      `--target=${target}`,
      `--build-arg=BUILD_IMAGE=${base}`,
      `--build-arg=RUNTIME_IMAGE=${base}`,
      // Over a directory that the base has: a mount point that had to be made would stay in the image.
      `--volume=${settings}:${settingsDir}:ro`,
      `--tag=${name}`,
      root,
    );
  } finally {
    rmSync(settings, { recursive: true, force: true });
  }
  const { Docker } = JSON.parse(buildah('inspect', '--type=image', name));
  return { name, config: Docker.config };
}

/** How this machine reaches the npm registry; never who it is there: packages of the lock file are public. */
function npmSettings() {
  const dir = mkdtempSync(join(cacheDir, 'npm-settings-'));
  const get = (name) => {
    const value = run('npm', ['config', 'get', name]).trim();
    return ['', 'null', 'undefined'].includes(value) ? undefined : value;
  };
  const lines = ['registry', 'proxy', 'https-proxy', 'noproxy'].flatMap((name) => {
    const value = get(name);
    return value === undefined ? [] : [`${name}=${value}`];
  });
  const authorities = get('cafile') ?? process.env.NODE_EXTRA_CA_CERTS;
  if (authorities) {
    copyFileSync(authorities, join(dir, 'authorities.crt'));
    lines.push(`cafile=${join(settingsDir, 'authorities.crt')}`);
  }
  writeFileSync(join(dir, 'npmrc'), `${lines.join('\n')}\n`);
  return dir;
}
