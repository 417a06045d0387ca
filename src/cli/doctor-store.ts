import type { Config, StoreConfig } from '../config/config.ts';
import { type Check, type Finding, failure } from '../doctor/check.ts';
import { examine, type Step, skipAll } from '../doctor/examine.ts';
import { judgeEmbedded, judgeReach } from '../doctor/judge-reach.ts';
import {
  judgeOverdue,
  judgeProbe,
  judgeStatements,
  judgeTimes,
  judgeUnknown,
  judgeVacuum,
} from '../doctor/judge-records.ts';
import { judgeIdentity, judgePrivileges, judgeSchema } from '../doctor/judge-schema.ts';
import {
  judgeClock,
  judgeConnections,
  judgeDurability,
  judgePooler,
  judgeStandbys,
  judgeVersion,
  judgeWritable,
} from '../doctor/judge-server.ts';
import { type EmbeddedServer, startEmbedded } from '../store/postgres/embedded.ts';
import { runningEmbedded } from '../store/postgres/embedded-visit.ts';
import { inspectStatements, probe } from '../store/postgres/inspect-probe.ts';
import {
  inspectOverdue,
  inspectTimes,
  inspectUnknown,
  inspectVacuum,
} from '../store/postgres/inspect-records.ts';
import { inspectIdentity, inspectPrivileges, inspectSchema } from '../store/postgres/inspect-schema.ts';
import {
  inspectClock,
  inspectConnections,
  inspectDurability,
  inspectServer,
} from '../store/postgres/inspect-server.ts';
import { type InspectSession, openSession } from '../store/postgres/inspect-session.ts';

type Store = Exclude<StoreConfig, { kind: 'none' }>;

interface Visit {
  readonly session: InspectSession;
  readonly url: string;
  readonly store: Store;
  readonly config: Config;
  /** As `storeFlags` makes them. */
  readonly storeFlags: string;
}

const theTables = ['schema', 'privileges'];

const steps: readonly Step<Visit>[] = [
  step('version', [], async ({ session }) => judgeVersion(await inspectServer(session), new Date())),
  step('writable', [], async ({ session }) => judgeWritable(await inspectServer(session))),
  step('durability', [], async ({ session, store }) =>
    judgeDurability(await inspectDurability(session), store.durability),
  ),
  step('standbys', [], async ({ session }) => judgeStandbys(await inspectDurability(session))),
  step('pooler', [], async ({ session }) => judgePooler(await inspectServer(session), session.greetedBy)),
  step('connections', [], async ({ session, store, config }) =>
    judgeConnections(await inspectConnections(session), store.poolSize, config.workers),
  ),
  step('clock', [], async ({ session }) => judgeClock(await inspectClock(session))),
  step('schema', [], async ({ url, store }) => judgeSchema(await inspectSchema(url), store.migrate)),
  step('privileges', [], async ({ session }) => judgePrivileges(await inspectPrivileges(session))),
  step('identity', theTables, async ({ session, config }) =>
    judgeIdentity(await inspectIdentity(session), config.identity),
  ),
  step('vacuum', ['schema'], async ({ session }) => judgeVacuum(await inspectVacuum(session))),
  step('overdue', theTables, async ({ session, config }) =>
    judgeOverdue(await inspectOverdue(session), config.loops.sweepMs),
  ),
  step('unknown', theTables, async ({ session, storeFlags }) =>
    judgeUnknown(await inspectUnknown(session), storeFlags),
  ),
  step('times', theTables, async ({ session, config }) =>
    judgeTimes(await inspectTimes(session), longestTimeoutMs(config), config.leaseMs),
  ),
  step('statements', [...theTables, 'writable', 'durability'], async ({ url }) =>
    judgeStatements(await inspectStatements(url)),
  ),
  step('probe', [...theTables, 'writable', 'durability', 'statements'], async ({ url, store, config }) =>
    judgeProbe(await probe({ url, poolSize: store.poolSize, durability: store.durability }), config.leaseMs),
  ),
];

function step(name: string, needs: readonly string[], look: Step<Visit>['look']): Step<Visit> {
  return { name, needs, look };
}

/** The whole group. Whatever it started for that, it stops again. */
export async function* storeChecks(config: Config, storeFlags: string): AsyncGenerator<Check> {
  const found = await findStore(config.store);
  if (found.kind === 'missing') {
    yield* unreached(found.finding);
    return;
  }
  const { url, store, server } = found;
  const opened = await openSession(url);
  try {
    if (opened.kind === 'failed') {
      yield* unreached(judgeReach(opened));
      return;
    }
    yield { group: 'Store', name: 'reachable', ...judgeReach(opened) };
    yield* examine('Store', steps, { session: opened.session, url, store, config, storeFlags });
  } finally {
    if (opened.kind === 'opened') await opened.session.close();
    await server?.stop();
  }
}

function* unreached(finding: Finding): Generator<Check> {
  yield { group: 'Store', name: 'reachable', ...finding };
  yield* skipAll('Store', steps, 'reachable');
}

type FoundStore =
  | {
      readonly kind: 'found';
      readonly store: Store;
      readonly url: string;
      readonly server: EmbeddedServer | null;
    }
  | { readonly kind: 'missing'; readonly finding: Finding };

async function findStore(store: StoreConfig): Promise<FoundStore> {
  if (store.kind === 'none') {
    const advice =
      'set DATABASE_URL, or store.url in the config, or use --embedded to try it on this machine';
    return { kind: 'missing', finding: failure('no store is named', advice, 'store_missing') };
  }
  if (store.kind === 'external') return { kind: 'found', store, url: store.url, server: null };
  try {
    const running = runningEmbedded(store.dataDir, () => {});
    if (running !== null) return { kind: 'found', store, url: running, server: null };
    const server = await startEmbedded({ dataDir: store.dataDir, log: () => {} });
    return { kind: 'found', store, url: server.url, server };
  } catch (error) {
    return { kind: 'missing', finding: judgeEmbedded(error) };
  }
}

function longestTimeoutMs({ defaults, routes }: Config): number {
  return Math.max(...[defaults, ...routes].map(({ upstream }) => upstream.timeoutMs));
}
