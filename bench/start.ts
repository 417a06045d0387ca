import { join } from 'node:path';
import { freePort } from '../src/store/postgres/embedded-launch.ts';
import { type Child, compiled, type StartChild } from './child.ts';
import { configureNginx, findNginx } from './nginx.ts';
import { makeLibraryStore, makeOncegateStore, oncegateCommand } from './stores.ts';

/** What contenders are given. */
export interface Site {
  readonly upstreamPort: number;
  /** For files that they need; it goes at the end. */
  readonly dir: string;
  /** A process that is stopped at the end; `name` is for its log. */
  readonly start: StartChild;
  /** The URL of a database of that name, made and filled when it is first asked for. */
  readonly database: (name: string, fill: (url: string) => Promise<void>) => Promise<string>;
  /** How many a store holds before the first request. */
  readonly keys: number;
  readonly profileDir: string | null;
}

export interface Started {
  readonly port: number;
  /** null: there is nothing between client and upstream. */
  readonly child: Child | null;
  /** Who counts executions, where that is not the upstream. */
  readonly service?: Child;
}

/** A file of this folder. */
export async function startOurs(site: Site, file: string, more: readonly string[] = []): Promise<Started> {
  const port = await freePort(0);
  const args = [compiled(file), urlOf(site.upstreamPort), String(port), ...more];
  return await started(site.start(file, args), port);
}

export async function startLibrary(site: Site): Promise<Started> {
  const url = await site.database('library', (made) => makeLibraryStore(made, site.keys));
  const port = await freePort(0);
  const child = site.start('in-app-library', [compiled('in-app-library'), String(port), url]);
  return { ...(await started(child, port)), service: child };
}

export async function startNginx(site: Site): Promise<Started> {
  const port = await freePort(0);
  const args = configureNginx(site.dir, port, site.upstreamPort);
  const command = findNginx()?.command ?? 'nginx';
  return await started(site.start('nginx', args, { command }), port);
}

interface Instance {
  readonly name: string;
  /** Default: one that all instances share, so that replays are read from a table that has grown. */
  readonly databaseUrl?: string;
  readonly opsPort?: number;
  /** Settings that are not the default. */
  readonly env?: NodeJS.ProcessEnv;
}

/** The built command with its defaults. */
export async function startOncegate(site: Site, instance: Instance): Promise<Started & { child: Child }> {
  const port = await freePort(0);
  const { name, opsPort = 0, env } = instance;
  const url =
    instance.databaseUrl ??
    (await site.database('oncegate', (made) => makeOncegateStore(made, site.keys, site.start)));
  const profile =
    site.profileDir === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${join(site.profileDir, name)}`];
  const where = ['--listen', `127.0.0.1:${port}`, '--ops-listen', `127.0.0.1:${opsPort}`];
  const args = [...profile, oncegateCommand, 'serve', urlOf(site.upstreamPort), ...where];
  return await started(site.start(`oncegate-${name}`, args, { env: { ...env, DATABASE_URL: url } }), port);
}

async function started(child: Child, port: number): Promise<{ port: number; child: Child }> {
  await child.listening(port);
  return { port, child };
}

function urlOf(port: number): string {
  return `http://127.0.0.1:${port}`;
}
