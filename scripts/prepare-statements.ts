/** Fails unless a server with our tables takes every statement of src/store/postgres/sql. For scripts/breakages.mjs. */
import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { migrateUp } from '../src/store/postgres/migrate.ts';
import type { Statement } from '../src/store/postgres/sql/statement.ts';

const folder = join(import.meta.dirname, '../src/store/postgres/sql');
const server = process.env['ONCEGATE_TEST_SERVER'] as string;
const database = `test_${randomBytes(6).toString('hex')}`;

function isStatement(value: unknown): value is Statement {
  return typeof value === 'object' && value !== null && 'text' in value && 'label' in value;
}

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}

const owner = await connected(server);
await owner.query(`CREATE DATABASE ${database}`);
try {
  const url = new URL(server);
  url.pathname = `/${database}`;
  await migrateUp(url.href);
  const client = await connected(url.href);
  try {
    for (const file of readdirSync(folder)) {
      const statements = Object.values((await import(join(folder, file))) as object).filter(isStatement);
      for (const { name, label, text } of statements) {
        try {
          await client.query(`PREPARE ${name} AS ${text}`);
        } catch (error) {
          process.exitCode = 1;
          console.error(`${label}: ${(error as Error).message}`);
        }
      }
    }
  } finally {
    await client.end();
  }
} finally {
  await owner.query(`DROP DATABASE ${database} WITH (FORCE)`);
  await owner.end();
}
