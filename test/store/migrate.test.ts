import { readdirSync, readFileSync } from 'node:fs';
import pg from 'pg';
import t from 'tap';
import { states } from '../../src/core/record.ts';
import { checkSchema, migrateStatus, migrateUp, migrationSql } from '../../src/store/postgres/migrate.ts';
import { query, testDatabase } from '../helpers/postgres.ts';
import { until } from '../helpers/until.ts';

const files = readdirSync(new URL('../../migrations/', import.meta.url)).sort();
const names = files.map((file) => `${file.slice(0, 4)} ${file.slice(5, -4).replaceAll('_', ' ')}`);

/** Everything of the schema that a difference could hide in. */
const dumps = {
  columns: `SELECT table_name, ordinal_position, column_name, data_type, udt_name, is_nullable, column_default,
    collation_name FROM information_schema.columns WHERE table_schema = 'oncegate' ORDER BY 1, 2`,
  constraints: `SELECT conrelid::regclass::text AS on_table, conname, contype, pg_get_constraintdef(oid) AS definition
    FROM pg_constraint WHERE connamespace = 'oncegate'::regnamespace ORDER BY 1, 2`,
  indexes: `SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'oncegate' ORDER BY 1, 2`,
  enums: `SELECT typname, enumlabel, enumsortorder FROM pg_enum JOIN pg_type ON pg_type.oid = enumtypid
    WHERE typnamespace = 'oncegate'::regnamespace ORDER BY 1, 3`,
  sequences: `SELECT sequencename, data_type, start_value, increment_by, cycle, cache_size FROM pg_sequences
    WHERE schemaname = 'oncegate' ORDER BY 1`,
  options: `SELECT relname, relkind, reloptions FROM pg_class WHERE relnamespace = 'oncegate'::regnamespace ORDER BY 1`,
  migrations: 'SELECT number, title FROM oncegate.migration ORDER BY 1',
};

async function dump(url: string): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {};
  for (const [name, sql] of Object.entries(dumps)) found[name] = await query(url, sql);
  return found;
}

t.test('up brings an empty database to the newest version, once', async (t) => {
  const { url } = await testDatabase(t);
  const wanted = files.length;
  t.strictSame(await migrateStatus(url), { version: 0, wanted, pending: names });
  t.strictSame(await migrateUp(url), { applied: names, version: wanted });
  t.strictSame(await migrateStatus(url), { version: wanted, wanted, pending: [] });
  t.strictSame(await migrateUp(url), { applied: [], version: wanted });
});

t.test('asking for the status changes nothing', async (t) => {
  const { url } = await testDatabase(t);
  await migrateStatus(url);
  t.strictSame(await query(url, `SELECT FROM pg_namespace WHERE nspname = 'oncegate'`), []);
});

t.test('the files are numbered without gaps', async (t) => {
  t.strictSame(
    files.map((file) => Number(file.slice(0, 4))),
    files.map((_, index) => index + 1),
  );
});

t.test('the text, applied by hand, gives the same schema', async (t) => {
  const [ours, byHand] = [await testDatabase(t), await testDatabase(t)];
  await migrateUp(ours.url);
  await query(byHand.url, migrationSql());
  t.strictSame(await dump(byHand.url), await dump(ours.url));
  t.match(await checkSchema(byHand.url, 'any'), { version: files.length, tls: null });
});

t.test('several runners at once: one does it, all end well', async (t) => {
  const { url } = await testDatabase(t);
  const results = await Promise.all([1, 2, 3, 4].map(() => migrateUp(url)));
  t.strictSame(
    results.flatMap(({ applied }) => applied),
    names,
  );
  t.ok(results.every(({ version }) => version === files.length));
});

t.test('a schema that is too old or too new is refused with exit code 3', async (t) => {
  const { url } = await testDatabase(t);
  await t.rejects(checkSchema(url, 'any'), { code: 'schema_mismatch', exitCode: 3, message: /migrate up/ });
  await migrateUp(url);
  t.match(await checkSchema(url, 'any'), { version: files.length });
  const newer = files.length + 1;
  await query(url, `INSERT INTO oncegate.migration (number, title) VALUES (${newer}, 'of a newer oncegate')`);
  await t.rejects(checkSchema(url, 'any'), { code: 'schema_mismatch', exitCode: 3, message: /newer/ });
  t.strictSame(await migrateUp(url), { applied: [], version: newer }, 'and left alone');
});

t.test('a store that does not answer is refused with exit code 4', async (t) => {
  const nowhere = 'postgres://nobody@127.0.0.1:1/none';
  const error = { code: 'store_unreachable', exitCode: 4 };
  await t.rejects(checkSchema(nowhere, 'any'), error);
  await t.rejects(migrateUp(nowhere), error);
  await t.rejects(migrateStatus(nowhere), error);
});

t.test('the first instance sets the identity, others compare, a person may accept another', async (t) => {
  const { url } = await testDatabase(t);
  await migrateUp(url);
  await checkSchema(url, 'tenant none');
  await checkSchema(url, 'tenant none');
  const changed = { code: 'identity_changed', exitCode: 2, message: /tenant none[\s\S]*tenant header/ };
  await t.rejects(checkSchema(url, 'tenant header'), changed);
  await t.rejects(checkSchema(url, 'tenant header'), changed, 'asking did not change it');
  await migrateUp(url, { acceptIdentity: 'tenant header' });
  await checkSchema(url, 'tenant header');
  await t.rejects(checkSchema(url, 'tenant none'), { code: 'identity_changed' });
});

t.test('of instances that start at once with different identities one is refused', async (t) => {
  const { url } = await testDatabase(t);
  await migrateUp(url);
  const results = await Promise.allSettled(['a', 'b'].map((identity) => checkSchema(url, identity)));
  t.strictSame(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
});

t.test('the schema holds the invariants', async (t) => {
  const { url } = await testDatabase(t);
  await migrateUp(url);

  t.test('the enum is the table of states', async (t) => {
    const [row] = await query(url, 'SELECT enum_range(NULL::oncegate.state)::text[] AS states');
    t.strictSame(row?.['states'], states);
  });

  t.test('epochs come from one block: cached ones could go down', async (t) => {
    t.match(await query(url, dumps.sequences), [
      { sequencename: 'epoch', data_type: 'bigint', cache_size: '1', cycle: false },
    ]);
  });

  const legal = {
    scope: `sha256('a')`,
    key: `'k'`,
    state: `'in_progress'`,
    status: 'NULL',
    completed_at: 'NULL',
    retain_until: 'NULL',
    headers: 'NULL',
    body: 'NULL',
  };
  const insert = (changes: Partial<typeof legal>) => {
    const row = {
      ...legal,
      ...changes,
      attempt: 'gen_random_uuid()',
      epoch: '1',
      instance: 'gen_random_uuid()',
      had_credentials: 'false',
      fingerprint: `''`,
      raw_digest: `''`,
      fingerprint_rule: `''`,
      deadline: 'now()',
      reserved_at: 'now()',
      method: `''`,
      path: `''`,
      request_id: `''`,
    };
    return `INSERT INTO oncegate.record (${Object.keys(row).join()}) VALUES (${Object.values(row).join()})`;
  };
  const completed = {
    state: `'completed'`,
    status: '200',
    completed_at: 'now()',
    retain_until: 'now()',
    headers: `''`,
  };
  const released = { state: `'failed_retryable'`, retain_until: 'now()' };

  t.test('every legal row is taken', async () => {
    const rows = [
      {},
      completed,
      { ...completed, body: `'x'` },
      released,
      { state: `'unknown'` },
      { state: `'dead_letter'` },
    ];
    for (const [index, row] of rows.entries()) await query(url, insert({ ...row, key: `'legal ${index}'` }));
  });

  const illegal: [string, Partial<typeof legal>, string][] = [
    ['a scope that is no digest', { scope: `'abc'` }, 'record_scope_is_a_digest'],
    ['an empty key', { key: `''` }, 'record_key_is_bounded'],
    ['a key of 256 bytes', { key: `repeat('k', 256)` }, 'record_key_is_bounded'],
    ['completed without a status', { ...completed, status: 'NULL' }, 'record_completed_has_an_answer'],
    ['completed without headers', { ...completed, headers: 'NULL' }, 'record_completed_has_an_answer'],
    ['completed without its time', { ...completed, completed_at: 'NULL' }, 'record_completed_has_an_answer'],
    ['completed without an end', { ...completed, retain_until: 'NULL' }, 'record_only_settled_expires'],
    ['released without an end', { ...released, retain_until: 'NULL' }, 'record_only_settled_expires'],
    ['a body in progress', { body: `''` }, 'record_only_completed_keeps_an_answer'],
    ['headers of a release', { ...released, headers: `''` }, 'record_only_completed_keeps_an_answer'],
    ...['in_progress', 'unknown', 'dead_letter'].map((state): [string, Partial<typeof legal>, string] => [
      `${state} that would expire`,
      { state: `'${state}'`, retain_until: 'now()' },
      'record_only_settled_expires',
    ]),
    ['an unknown state', { state: `'pending'` }, ''],
  ];
  for (const [name, row, constraint] of illegal) {
    t.test(`refused: ${name}`, async (t) => {
      await t.rejects(
        query(url, insert(row)),
        constraint === '' ? { code: '22P02' } : { code: '23514', constraint },
      );
    });
  }

  t.test('one row for one key, and one identity', async (t) => {
    await query(url, insert({}));
    await t.rejects(query(url, insert({})), { code: '23505', constraint: 'record_pkey' });
    await query(url, `INSERT INTO oncegate.identity (settings) VALUES ('a')`);
    await t.rejects(query(url, `INSERT INTO oncegate.identity (settings) VALUES ('b')`), { code: '23505' });
    await t.rejects(query(url, `INSERT INTO oncegate.identity (only_row, settings) VALUES (false, 'b')`), {
      code: '23514',
      constraint: 'identity_is_one_row',
    });
  });
});

t.test('a long reader holds the migration up, and the migration nobody', async (t) => {
  const { url } = await testDatabase(t);
  await query(url, 'CREATE SCHEMA oncegate');
  await query(url, readFileSync('migrations/0001_records.sql', 'utf8'));
  await query(url, 'CREATE TABLE oncegate.migration (number integer PRIMARY KEY, title text NOT NULL)');
  await query(url, `INSERT INTO oncegate.migration VALUES (1, 'records')`);
  const reader = new pg.Client({ connectionString: url });
  await reader.connect();
  await reader.query('BEGIN');
  await reader.query('SELECT FROM oncegate.record');
  const migrating = migrateUp(url);
  const waits = `SELECT FROM pg_locks JOIN pg_class ON pg_class.oid = relation
    WHERE relname = 'record' AND NOT granted`;
  await until('it waits for the table', async () => (await query(url, waits)).length > 0);
  await until('and gives up for a while', async () => (await query(url, waits)).length === 0);
  t.same(await query(url, 'SELECT FROM oncegate.record'), [], 'meanwhile others get through');
  await reader.query('COMMIT');
  await reader.end();
  t.ok((await migrating).applied.length > 0);
});
