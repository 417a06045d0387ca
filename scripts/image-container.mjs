import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildah } from './image-tools.mjs';
import { attempt } from './steps.mjs';

/**
 * Starts a container as `docker run --read-only --cap-drop=ALL --network=host` would: what the image declares (user,
 * environment, command, volumes) is taken from there. `files` are mounted read-only, `volumes` kept in the given directory.
 */
export function startContainer(
  { name, config },
  { args = config.Cmd, env = {}, files = {}, volumes = {} } = {},
) {
  const id = `oncegate-check-${randomBytes(4).toString('hex')}`;
  const bundle = mkdtempSync(join(tmpdir(), `${id}-`));
  const working = buildah('from', name).trim();
  const [uid, gid] = config.User.split(':').map(Number);
  const root = { path: buildah('mount', working).trim(), readonly: true };
  const main = {
    user: { uid, gid },
    args: [...config.Entrypoint, ...args],
    env: [...config.Env, ...Object.entries(env).map(([key, value]) => `${key}=${value}`)],
    cwd: config.WorkingDir || '/',
    capabilities: {},
    noNewPrivileges: true,
  };
  const mounts = [
    { destination: '/proc', type: 'proc', source: 'proc' },
    { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=755'] },
    {
      destination: '/dev/shm',
      type: 'tmpfs',
      source: 'shm',
      options: ['nosuid', 'noexec', 'nodev', 'mode=1777'],
    },
    ...Object.entries(files).map(([destination, source]) => bind(destination, source, 'ro')),
    ...Object.keys(config.Volumes ?? {}).map((destination) => {
      const dir = volumes[destination] ?? join(bundle, 'volume');
      makeVolume(dir, join(root.path, destination));
      return bind(destination, dir, 'rw');
    }),
  ];
  const linux = { namespaces: ['pid', 'ipc', 'mount', 'uts'].map((type) => ({ type })) };
  const spec = { ociVersion: '1.0.2', process: main, root, mounts, linux };
  writeFileSync(join(bundle, 'config.json'), JSON.stringify(spec));

  const child = spawn('runc', ['run', '--bundle', bundle, id], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  let code = null;
  const exited = new Promise((resolve) => child.once('close', (status) => resolve((code = status))));
  return {
    output: () => output,
    /** Of process 1; null while it runs. */
    exitCode: () => code,
    exited,
    exec: (...command) => attempt('runc', ['exec', id, ...command]),
    kill: (signal) => attempt('runc', ['kill', id, signal]),
    async remove() {
      attempt('runc', ['kill', id, 'KILL']);
      await exited;
      buildah('rm', working);
      rmSync(bundle, { recursive: true, force: true });
    },
  };
}

function bind(destination, source, mode) {
  return { destination, type: 'bind', source, options: ['bind', mode, 'nosuid', 'nodev'] };
}

/** As Docker makes one: empty at first, and its owner is that of the directory in the image. */
function makeVolume(dir, inImage) {
  if (existsSync(dir)) return;
  const { uid, gid, mode } = statSync(inImage);
  mkdirSync(dir);
  chmodSync(dir, mode);
  chownSync(dir, uid, gid);
}
