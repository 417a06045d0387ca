import pg from 'pg';
import { binDir } from '../drill/debian-binaries.ts';
import { Pair } from '../drill/failover-pair.ts';
import { type OwnServer, ownServer, query, type Teardown } from '../test/helpers/postgres.ts';
import type { LaneKind } from './plan.ts';
import { Replica } from './replica.ts';
import type { UpstreamProcess } from './upstream-process.ts';

/** A place for one run at a time: a database of its own, and the sidecars that share it. */
export interface Lane {
  readonly kind: LaneKind;
  readonly name: string;
  readonly replicas: readonly Replica[];
  readonly upstream: UpstreamProcess;
  /** Straight to the server, past every fault. */
  readonly database: pg.Pool;
  readonly databaseUrl: string;
  /** Of a lane that may crash its server. */
  readonly server: OwnServer | null;
  /** Of a lane whose commits wait for a standby. */
  readonly pair: Pair | null;
}

export interface LaneOptions {
  readonly kind: LaneKind;
  readonly number: number;
  /** Of the server that most lanes share. */
  readonly serverUrl: string;
  readonly upstream: UpstreamProcess;
}

export async function openLane(t: Teardown, options: LaneOptions): Promise<Lane> {
  const { kind, number, upstream } = options;
  const name = `lane_${number}`;
  const server = kind === 'crash' ? await ownServer(t) : null;
  const pair = kind === 'standby' ? await Pair.start(t, binDir() as string) : null;
  // Before the sidecars: they look at it when they start.
  await pair?.attachStandby('sync');
  const databaseUrl = pair?.url ?? (await createDatabase(server?.url ?? options.serverUrl, name));
  const database = new pg.Pool({ connectionString: pair?.directUrl ?? databaseUrl, max: 2 });
  // A server that crashes breaks idle connections: the next query gets a new one.
  database.on('error', () => {});
  t.teardown(() => database.end());
  const replicas: Replica[] = [];
  // One after the other: the first migrates.
  for (let index = 0; index < (kind === 'one' ? 1 : 3); index += 1)
    replicas.push(await Replica.start(t, { index, databaseUrl, upstreamPort: upstream.port }));
  return { kind, name, replicas, upstream, database, databaseUrl, server, pair };
}

async function createDatabase(serverUrl: string, name: string): Promise<string> {
  await query(serverUrl, `CREATE DATABASE ${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}
