import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { freePort } from '../src/store/postgres/embedded-launch.ts';
import { type Child, compiled, type StartChild } from './child.ts';
import { makeOncegateStore, makeStatementStore, oncegateCommand } from './stores.ts';

/** What contenders are given. */
export interface Site {
  readonly upstreamPort: number;
  /** A process that is stopped at the end; `name` is for its log. */
  readonly start: StartChild;
  /** The URL of a database of that name, made and filled when it is first asked for. */
  readonly database: (name: string, fill: (url: string) => Promise<void>) => Promise<string>;
  /** How many a store holds before the first request. */
  readonly keys: number;
  readonly profileDir: string | null;
}

export interface Contender {
  readonly name: ContenderName;
  readonly label: string;
  /** Whether PostgreSQL works for it. */
  readonly usesStore: boolean;
  /** null: every request has a key of its own. */
  readonly keys: readonly string[] | null;
  /** Stands in the head of every answer. */
  readonly expect: string;
  /** How often the upstream runs for one request. */
  readonly executions: 0 | 1;
  start(site: Site): Promise<Started>;
}

export interface Started {
  readonly port: number;
  /** null: there is nothing between client and upstream. */
  readonly child: Child | null;
}

export type ContenderName = 'direct' | 'http-proxy' | 'statements' | 'first' | 'replay';

/** Few keys, as of clients that retry: more than connections, so that no two of them ask for one at once. */
const repeatedKeys = Array.from({ length: 512 }, () => randomUUID());

const created = 'HTTP/1.1 201 Created';

const oncePerRequest = { keys: null, expect: created, executions: 1 } as const;

export const contenders: readonly Contender[] = [
  {
    ...oncePerRequest,
    name: 'direct',
    label: 'direct, no proxy',
    usesStore: false,
    start: async ({ upstreamPort }) => ({ port: upstreamPort, child: null }),
  },
  {
    ...oncePerRequest,
    name: 'http-proxy',
    label: 'plain @fastify/http-proxy, guards nothing',
    usesStore: false,
    start: (site) => startOurs(site, 'plain-http-proxy', []),
  },
  {
    ...oncePerRequest,
    name: 'statements',
    label: 'one INSERT and one UPDATE per request',
    usesStore: true,
    start: async (site) => {
      const url = await site.database('statements', (made) => makeStatementStore(made, site.keys));
      return await startOurs(site, 'statement-per-request', [url]);
    },
  },
  {
    ...oncePerRequest,
    name: 'first',
    label: 'Oncegate, first request',
    usesStore: true,
    start: (site) => startOncegate(site, 'first'),
  },
  {
    name: 'replay',
    label: 'Oncegate, replay',
    usesStore: true,
    keys: repeatedKeys,
    expect: 'Idempotent-Replayed: true',
    executions: 0,
    start: (site) => startOncegate(site, 'replay'),
  },
];

async function startOurs(site: Site, file: string, more: readonly string[]): Promise<Started> {
  const port = await freePort(0);
  const args = [compiled(file), urlOf(site.upstreamPort), String(port), ...more];
  return await started(site.start(file, args), port);
}

/** The built command, its defaults, and one store for both instances: replays are read from a table that has grown. */
async function startOncegate(site: Site, name: string): Promise<Started> {
  const port = await freePort(0);
  const url = await site.database('oncegate', (made) => makeOncegateStore(made, site.keys, site.start));
  const profile =
    site.profileDir === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${join(site.profileDir, name)}`];
  const where = ['--listen', `127.0.0.1:${port}`, '--ops-listen', '127.0.0.1:0'];
  const args = [...profile, oncegateCommand, 'serve', urlOf(site.upstreamPort), ...where];
  return await started(site.start(`oncegate-${name}`, args, { DATABASE_URL: url }), port);
}

async function started(child: Child, port: number): Promise<Started> {
  await child.listening(port);
  return { port, child };
}

function urlOf(port: number): string {
  return `http://127.0.0.1:${port}`;
}
