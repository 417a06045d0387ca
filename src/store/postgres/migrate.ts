import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { asError, OncegateError } from '../../errors.ts';
import type { DurabilityFacts } from './inspect-server.ts';
import { readDurability } from './sql/doctor.ts';
import {
  appliedMigrations,
  boundMigrationLocks,
  createMigrationTable,
  lockMigrations,
  migrationTableExists,
  readIdentity,
  recordMigration,
  replaceIdentity,
  setIdentityOnce,
} from './sql/schema.ts';

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
    await client.query('BEGIN');
    await client.query(lockMigrations);
    await client.query(boundMigrationLocks);
    await client.query(createMigrationTable);
    const { version, pending } = await statusOf(client);
    for (const migration of pending) {
      await client.query(migration.sql);
      await client.query(recordMigration, [migration.number, migration.title]);
    }
    if (options.acceptIdentity !== undefined) await client.query(replaceIdentity, [options.acceptIdentity]);
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
  /** Protocol of the connection, as `TLSv1.3`; null: in clear. */
  readonly tls: string | null;
  readonly durability: DurabilityFacts;
}

/** Rejects with `schema_mismatch` unless the store's schema is exactly ours, and `identity_changed` on other settings. */
export async function checkSchema(url: string, identity: string): Promise<CheckedSchema> {
  return await withClient(url, async (client) => {
    const version = await ourVersion(client);
    await checkIdentity(client, identity);
    const looked = await client.query<DurabilityFacts>(readDurability);
    return { version, tls: tlsOf(client), durability: looked.rows[0] as DurabilityFacts };
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

async function checkIdentity(client: pg.Client, identity: string): Promise<void> {
  await client.query(setIdentityOnce, [identity]);
  const kept = (await client.query<{ settings: string }>(readIdentity)).rows[0]?.settings;
  if (kept === identity) return;
  throw new OncegateError(
    'identity_changed',
    'the settings that make a key unique differ from those this store was used with.\n' +
      `  the store has  ${kept}\n  this config    ${identity}\n` +
      'With other settings the same retry would be a new key and could run again. Restore the old settings; or, once ' +
      'no client retries a key from before, stop every instance and run `oncegate migrate up --accept-identity`.',
  );
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

/** It answered, and said no: asking again would not help. By SQLSTATE. */
const refusals: readonly (readonly [code: RegExp, advice: string])[] = [
  [/^28/, "Check user and password in the store's URL."],
  [/^3D/, "Create that database first, or correct the store's URL."],
  [/^55P03$/, 'Something holds a lock on its tables for long (a dump, a report); try again when it is done.'],
  [/^42501$/, 'Grant that right, or let the owner run `oncegate migrate up`.'],
  [/^42/, 'Its schema is not as this Oncegate left it.'],
];

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: 5_000,
    application_name: 'oncegate start',
  });
  client.on('error', () => {});
  try {
    await client.connect();
    return await work(client);
  } catch (error) {
    if (error instanceof OncegateError) throw error;
    const { code, message } = asError(error) as Error & { code?: unknown };
    const refusal = typeof code === 'string' ? refusals.find(([pattern]) => pattern.test(code)) : undefined;
    throw refusal === undefined
      ? new OncegateError(
          'store_unreachable',
          `the store does not answer: ${message}. Is PostgreSQL running there, and is DATABASE_URL or store.url right?`,
          { cause: error },
        )
      : new OncegateError('store_refused', `the store refuses: ${message}. ${refusal[1]}`, { cause: error });
  } finally {
    await client.end().catch(() => {});
  }
}
