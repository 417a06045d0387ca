import { setTimeout } from 'node:timers/promises';
import { type ErrorCode, OncegateError } from '../../errors.ts';
import { placeText, type StorePlace } from './connect-fault.ts';
import { startEmbedded } from './embedded.ts';
import type { DurabilityFacts } from './inspect-server.ts';
import { checkSchema, migrateUp } from './migrate.ts';
import { PostgresStore } from './postgres.ts';
import { rehearse } from './rehearsal.ts';

interface Options {
  readonly migrate: 'check' | 'auto';
  readonly poolSize: number;
  readonly durability: 'strict' | 'relaxed';
}

export type StoreTarget =
  | ({ readonly kind: 'external'; readonly url: string } & Options)
  | ({ readonly kind: 'embedded'; readonly dataDir: string } & Options);

export interface OpenedStore {
  readonly store: PostgresStore;
  readonly version: number;
  /** For people: where it is, without credentials, and how it is spoken to. */
  readonly description: string;
  readonly warnings: readonly string[];
  readonly durability: DurabilityFacts;
  /** Stops the embedded server; nothing to do for an external one. */
  readonly stop: () => Promise<void>;
}

export interface Watching {
  readonly log: (line: string) => void;
  /** Ends the wait. */
  readonly signal: AbortSignal | undefined;
}

/** Milliseconds a store may take to come up beside us, as in a pod that starts both. */
const reachableWithinMs = 30_000;
const askAgainMs = 1_000;
const away: ReadonlySet<ErrorCode> = new Set(['store_unreachable', 'store_unavailable']);

/** Reachable, migrated, of our identity, durable, and it carries out what a request needs; or an error that says which of these it is not. */
export async function openStore(
  target: StoreTarget,
  identity: string,
  { log, signal }: Watching,
): Promise<OpenedStore> {
  const server = target.kind === 'embedded' ? await startEmbedded({ dataDir: target.dataDir, log }) : null;
  const stop = async () => server?.stop();
  try {
    const url = server?.url ?? (target as { url: string }).url;
    return await whenReachable({ log, signal }, async () => {
      if (server !== null || target.migrate === 'auto') {
        const { applied } = await migrateUp(url);
        for (const name of applied) log(`migrated: ${name}`);
      }
      const { version, place, tls, durability } = await checkSchema(url, identity);
      const { poolSize, durability: wanted } = target;
      const store = new PostgresStore({ url, poolSize, durability: wanted, identity });
      await assertDurable(store);
      await rehearseFor(store, url);
      return { store, version, durability, ...describe(target, place, tls), stop };
    });
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Again and again while the store is away, for as long as a start may take. */
export async function whenReachable<T>({ log, signal }: Watching, work: () => Promise<T>): Promise<T> {
  const untilMs = performance.now() + reachableWithinMs;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const isAway = error instanceof OncegateError && away.has(error.code);
      if (!isAway || performance.now() > untilMs || signal?.aborted) throw error;
      log(`${error.message}; trying again for ${Math.ceil((untilMs - performance.now()) / 1000)} s`);
      await setTimeout(askAgainMs, undefined, { signal }).catch(() => {});
    }
  }
}

async function assertDurable(store: PostgresStore): Promise<void> {
  try {
    await store.check();
  } catch (error) {
    await store.close(0);
    // What `check` rejects with names the statement, that the connection, and that the reason.
    const reason = ((error as Error).cause as Error | undefined)?.cause;
    if (reason instanceof OncegateError) throw reason;
    throw new OncegateError('store_unreachable', (error as Error).message, { cause: error });
  }
}

async function rehearseFor(store: PostgresStore, url: string): Promise<void> {
  try {
    await rehearse(url);
  } catch (error) {
    await store.close(0);
    throw error;
  }
}

function describe(
  target: StoreTarget,
  place: StorePlace,
  tls: string | null,
): Pick<OpenedStore, 'description' | 'warnings'> {
  const where = placeText(place);
  if (target.kind === 'embedded')
    return { description: `embedded PostgreSQL at ${where}, data in ${target.dataDir}`, warnings: [] };
  // A path: a socket file of this machine.
  const isLocal = /^(localhost|127\..*|::1|\/.*)$/.test(place.host);
  const warnings =
    tls !== null || isLocal
      ? []
      : [`the store at ${place.host} is spoken to without TLS; add ?sslmode=verify-full to its URL`];
  return { description: `PostgreSQL at ${where}, ${tls ?? 'no TLS'}`, warnings };
}
