import { randomUUID } from 'node:crypto';
import { findNginx } from './nginx.ts';
import { type Site, type Started, startLibrary, startNginx, startOncegate, startOurs } from './start.ts';
import { makeStatementStore } from './stores.ts';
import type { Traffic } from './traffic.ts';

export type ContenderName =
  | 'direct'
  | 'nginx'
  | 'http-proxy'
  | 'http-proxy-lean'
  | 'statements'
  | 'library'
  | 'first'
  | 'first-workers'
  | 'replay'
  | 'replay-store'
  | 'mixed'
  | 'duplicates'
  | 'http-proxy-get'
  | 'http-proxy-lean-get'
  | 'pass-through';

export interface Contender {
  readonly name: ContenderName;
  readonly label: string;
  /** Whether PostgreSQL works for it. */
  readonly usesStore: boolean;
  readonly traffic: Traffic;
  /** Why it cannot take part; null: it can. */
  readonly missing?: () => string | null;
  start(site: Site): Promise<Started>;
}

/** Few keys, as of clients that retry: more than connections, so that no two of them ask for one at once. */
const someKeys = (): readonly string[] => Array.from({ length: 512 }, () => randomUUID());
/** More than the replay cache holds: taken in turn, each has gone from it when its turn comes again. */
const manyKeys = (): readonly string[] => Array.from({ length: 16_000 }, () => randomUUID());

const firsts: Traffic = { kind: 'first' };

export const contenders: readonly Contender[] = [
  {
    name: 'direct',
    label: 'direct, no proxy',
    usesStore: false,
    traffic: firsts,
    start: async ({ upstreamPort }) => ({ port: upstreamPort, child: null }),
  },
  {
    name: 'nginx',
    label: 'nginx, guards nothing',
    usesStore: false,
    traffic: firsts,
    missing: () =>
      findNginx() === null ? 'it is not installed; on Debian: apt-get install nginx-light' : null,
    start: startNginx,
  },
  {
    name: 'http-proxy',
    label: '@fastify/http-proxy, default logging, guards nothing',
    usesStore: false,
    traffic: firsts,
    start: (site) => startOurs(site, 'plain-http-proxy'),
  },
  {
    // Fastify's own two lines a request, written at once, cost as much as a third of such a proxy.
    name: 'http-proxy-lean',
    label: 'the same, one line a request, in the background',
    usesStore: false,
    traffic: firsts,
    start: (site) => startOurs(site, 'lean-http-proxy'),
  },
  {
    name: 'statements',
    label: 'one INSERT and one UPDATE per request',
    usesStore: true,
    traffic: firsts,
    start: async (site) => {
      const url = await site.database('statements', (made) => makeStatementStore(made, site.keys));
      return await startOurs(site, 'statement-per-request', [url]);
    },
  },
  {
    // express-idempotency, which is better known, looks through all it holds for every request, in memory, and never
    // forgets: it measures its own age. Of the others only this one can be given a durable store.
    name: 'library',
    label: 'in the service: @node-idempotency/core, stores in PostgreSQL',
    usesStore: true,
    traffic: firsts,
    start: startLibrary,
  },
  oncegate('first', 'first request', firsts),
  // Each batches for itself: what a request costs the store shows whether that is dear.
  oncegate('first-workers', 'first request, 2 workers', firsts, { ONCEGATE_WORKERS: '2' }),
  oncegate('replay', 'replay, from memory', { kind: 'replays', keys: someKeys() }),
  oncegate('replay-store', 'replay, from the store', { kind: 'replays', keys: manyKeys() }),
  oncegate('mixed', '80 % first, 20 % replays', { kind: 'mixed', keys: someKeys() }),
  oncegate('duplicates', '4 at once per key, upstream 5 ms', { kind: 'duplicates' }),
  {
    name: 'http-proxy-get',
    label: '@fastify/http-proxy, default logging, GET',
    usesStore: false,
    traffic: { kind: 'reads' },
    start: (site) => startOurs(site, 'plain-http-proxy'),
  },
  {
    name: 'http-proxy-lean-get',
    label: 'the same, one line a request, in the background, GET',
    usesStore: false,
    traffic: { kind: 'reads' },
    start: (site) => startOurs(site, 'lean-http-proxy'),
  },
  { ...oncegate('pass-through', 'GET passed through', { kind: 'reads' }), usesStore: false },
];

function oncegate(
  name: ContenderName,
  label: string,
  traffic: Traffic,
  env: NodeJS.ProcessEnv = {},
): Contender {
  return {
    name,
    label: `Oncegate, ${label}`,
    usesStore: true,
    traffic,
    start: (site) => startOncegate(site, { name, env }),
  };
}
