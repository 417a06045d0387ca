import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import type pg from 'pg';
import { OncegateError } from '../../errors.ts';
import { placeOf, type StorePlace } from './connect-fault.ts';
import { mayLoseBy } from './durability.ts';
import { acceptIdentity, checkIdentity } from './identity.ts';
import type { DurabilityFacts, DurabilityRow } from './inspect-server.ts';
import { readDurability } from './sql/doctor.ts';
import {
  appliedMigrations,
  boundMigrationLocks,
  createMigrationTable,
  lockMigrations,
  migrationTableExists,
  recordMigration,
} from './sql/schema.ts';
import { withClient } from './start-client.ts';

/** Forward only, numbered without gaps, each safe beside replicas of the version before it. */
interface Migration {
  readonly number: number;
  readonly title: string;
  readonly sql: string;
}

export interface MigrationStatus {
  readonly version: number;
  readonly wanted: number;
  readonly pending: readonly string[];
}

const folder = new URL('../../../migrations/', import.meta.url);

function migrations(): readonly Migration[] {
  return readdirSync(folder)
    .filter((file) => /^\d{4}_.*\.sql$/.test(file))
    .sort()
    .map((file) => ({
      number: Number(file.slice(0, 4)),
      title: file.slice(5, -4).replaceAll('_', ' '),
      sql: readFileSync(new URL(file, folder), 'utf8'),
    }));
}

/** A change of a table that waits behind a long reader makes all traffic wait behind it: short waits, and pauses between. */
const maxLockTries = 30;
const lockPauseMs = 1_000;

const nameOf = ({ number, title }: Migration): string => `${String(number).padStart(4, '0')} ${title}`;

export async function migrateUp(
  url: string,
  options: { readonly acceptIdentity?: string } = {},
): Promise<{ readonly applied: readonly string[]; readonly version: number }> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await migrateOnce(url, options);
    } catch (error) {
      const isLocked = ((error as Error).cause as { code?: string } | undefined)?.code === '55P03';
      if (!isLocked || tries === maxLockTries) throw error;
      await setTimeout(lockPauseMs);
    }
  }
}

async function migrateOnce(
  url: string,
  options: { readonly acceptIdentity?: string },
): Promise<{ readonly applied: readonly string[]; readonly version: number }> {
  return await withClient(url, async (client) => {
    // Each statement sees what was committed by then, whatever the role's own setting is.
    await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
    await client.query(lockMigrations);
    await client.query(boundMigrationLocks);
    await client.query(createMigrationTable);
    const { version, pending } = await statusOf(client);
    for (const migration of pending) {
      await client.query(migration.sql);
      await client.query(recordMigration, [migration.number, migration.title]);
    }
    if (options.acceptIdentity !== undefined) await acceptIdentity(client, options.acceptIdentity);
    await client.query('COMMIT');
    return { applied: pending.map(nameOf), version: Math.max(version, migrations().length) };
  });
}

export async function migrateStatus(url: string): Promise<MigrationStatus> {
  return await withClient(url, async (client) => {
    const { version, pending } = await statusOf(client);
    return { version, wanted: migrations().length, pending: pending.map(nameOf) };
  });
}

/** For people who run migrations with their own tools: the same text, in one transaction. */
export function migrationSql(): string {
  const steps = migrations().map(
    (migration) =>
      `-- ${nameOf(migration)}\n${migration.sql}\n` +
      `${recordMigration.replace('$1', String(migration.number)).replace('$2', `'${migration.title}'`)};\n`,
  );
  return `BEGIN;\n\n${createMigrationTable};\n\n${steps.join('\n')}\nCOMMIT;\n`;
}

export interface CheckedSchema {
  readonly version: number;
  readonly place: StorePlace;
  /** Protocol of the connection, as `TLSv1.3`; null: in clear. */
  readonly tls: string | null;
  readonly durability: DurabilityFacts;
}

/** Rejects with `schema_mismatch` unless the store's schema is exactly ours, and `identity_changed` on other settings. */
export async function checkSchema(url: string, identity: string): Promise<CheckedSchema> {
  return await withClient(url, async (client) => {
    const version = await ourVersion(client);
    await checkIdentity(client, identity);
    const row = (await client.query<DurabilityRow>(readDurability)).rows[0] as DurabilityRow;
    return {
      version,
      place: placeOf(client),
      tls: tlsOf(client),
      durability: { ...row, mayLoseBy: mayLoseBy(row) },
    };
  });
}

/** The same of the version alone; it writes nothing, so that looking at a store never sets its identity. */
export async function checkVersion(url: string): Promise<number> {
  return await withClient(url, ourVersion);
}

async function ourVersion(client: pg.Client): Promise<number> {
  const { version, pending } = await statusOf(client);
  const wanted = migrations().length;
  if (version > wanted) {
    throw new OncegateError(
      'schema_mismatch',
      `the store's schema is version ${version}, newer than this Oncegate knows (${wanted}). ` +
        'Run the newer Oncegate that migrated it.',
    );
  }
  if (pending.length > 0) {
    throw new OncegateError(
      'schema_mismatch',
      `the store's schema is version ${version}, this Oncegate needs ${wanted}. ` +
        'Run `oncegate migrate up` once, or set store.migrate: auto.',
    );
  }
  return version;
}

async function statusOf(client: pg.Client): Promise<{ version: number; pending: readonly Migration[] }> {
  const exists = await client.query<{ there: boolean }>(migrationTableExists);
  const applied = exists.rows[0]?.there
    ? (await client.query<{ number: number }>(appliedMigrations)).rows.map((row) => row.number)
    : [];
  const done = new Set(applied);
  return { version: applied.at(-1) ?? 0, pending: migrations().filter(({ number }) => !done.has(number)) };
}

/** The driver shows its socket in no other way; what it was told to do may differ from what it did. */
function tlsOf(client: pg.Client): string | null {
  const { stream } = (client as unknown as { connection: { stream: { getProtocol?: () => string | null } } })
    .connection;
  return stream.getProtocol?.() ?? null;
}
