import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { freePort } from '../src/store/postgres/embedded-launch.ts';
import { type Child, root, startChild } from './child.ts';

/** What contenders are given. */
export interface Site {
  readonly upstreamPort: number;
  /** Logs go here. */
  readonly dir: string;
  /** The URL of a database of that name, made when it is first asked for. */
  readonly database: (name: string) => Promise<string>;
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
    start: async (site) => startOurs(site, 'statement-per-request', [await site.database('statements')]),
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
  const args = [
    '--import=tsx',
    join(root, 'bench', `${file}.ts`),
    urlOf(site.upstreamPort),
    String(port),
    ...more,
  ];
  return await started(startChild(args, join(site.dir, `${file}.log`)), port);
}

/** The built command, its defaults, and one store for both instances: replays are read from a table that has grown. */
async function startOncegate(site: Site, name: string): Promise<Started> {
  const port = await freePort(0);
  const command = join(root, 'dist/cli/oncegate.js');
  const env = { DATABASE_URL: await site.database('oncegate') };
  const migrating = startChild([command, 'migrate', 'up'], join(site.dir, 'migrate.log'), env);
  await migrating.ended();
  const profile =
    site.profileDir === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${join(site.profileDir, name)}`];
  const where = ['--listen', `127.0.0.1:${port}`, '--ops-listen', '127.0.0.1:0'];
  const args = [...profile, command, 'serve', urlOf(site.upstreamPort), ...where];
  return await started(startChild(args, join(site.dir, `oncegate-${name}.log`), env), port);
}

async function started(child: Child, port: number): Promise<Started> {
  await child.listening(port);
  return { port, child };
}

function urlOf(port: number): string {
  return `http://127.0.0.1:${port}`;
}
