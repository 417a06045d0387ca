import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, loadavg, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { root } from './child.ts';
import { findNginx } from './nginx.ts';

const packages = [
  'fastify',
  '@fastify/http-proxy',
  '@fastify/reply-from',
  '@node-idempotency/core',
  'undici',
  'pg',
  'pino',
];

/** What is needed to read the figures later, and to get them again. */
export function describeRun(postgresql: string, command: string) {
  const [cpu] = cpus();
  return {
    at: new Date().toISOString(),
    command: [command, ...process.argv.slice(2)].join(' '),
    machine: {
      cpu: cpu?.model ?? 'unknown',
      cores: cpus().length,
      memoryMb: Math.round(totalmem() / 1_048_576),
      platform: `${process.platform} ${release()} ${process.arch}`,
      // Above the number of cores others were at work too.
      loadAverage: loadavg().map((load) => Math.round(load * 100) / 100),
    },
    versions: {
      oncegate: versionOf('package.json'),
      commit: git('rev-parse', '--short', 'HEAD'),
      changedFiles: git('status', '--porcelain', 'src').split('\n').filter(Boolean).length,
      node: process.version,
      postgresql,
      nginx: findNginx()?.version ?? null,
      ...Object.fromEntries(packages.map((name) => [name, versionOf(`node_modules/${name}/package.json`)])),
    },
  };
}

function versionOf(file: string): string {
  const { version } = JSON.parse(readFileSync(join(root, file), 'utf8')) as { version: string };
  return version;
}

function git(...args: string[]): string {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  return status === 0 ? stdout.trim() : '';
}
