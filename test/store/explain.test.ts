import { randomUUID } from 'node:crypto';
import type { Client } from 'pg';
import type { Test } from 'tap';
import t from 'tap';
import { Pool } from '../../src/store/postgres/pool.ts';
import { takeCensus } from '../../src/store/postgres/sql/census.ts';
import { keepPlans } from '../../src/store/postgres/sql/connection.ts';
import { countUnknown } from '../../src/store/postgres/sql/doctor.ts';
import {
  findReapable,
  findSweepable,
  reap,
  releaseNeverSent,
  releaseUndispatched,
  sweep,
} from '../../src/store/postgres/sql/loops.ts';
import {
  findAuditLine,
  operatorComplete,
  operatorPurge,
  operatorRelease,
  readAudit,
  readLateAnswers,
} from '../../src/store/postgres/sql/operator.ts';
import {
  findNamed,
  listRunning,
  listSettled,
  listWaiting,
  viewAt,
} from '../../src/store/postgres/sql/operator-look.ts';
import { read, readWhole } from '../../src/store/postgres/sql/read.ts';
import { confirm, markDispatched, reserve, takeOver } from '../../src/store/postgres/sql/reserve.ts';
import { settle } from '../../src/store/postgres/sql/settle.ts';
import { type Statement, statement } from '../../src/store/postgres/sql/statement.ts';
import type { Store } from '../../src/store/store.ts';
import { until } from './fault-harness.ts';
import { connected, type PostgresHarness, postgresHarness } from './postgres-harness.ts';
import { answer, digest, heldBy, recordAt, reservation, reserved, retentionMs } from './samples.ts';

/** Completed records as an hour of traffic leaves them; a few are expired, a few still in progress. */
async function fill(harness: PostgresHarness, rows: number): Promise<void> {
  await harness.query(
    `INSERT INTO oncegate.record (scope, key, attempt, epoch, instance, state, had_credentials, fingerprint, raw_digest,
      fingerprint_rule, deadline, reserved_at, completed_at, retain_until, status, method, path, request_id, headers, body)
    SELECT sha256(n::text::bytea), 'key-' || n, gen_random_uuid(), nextval('oncegate.epoch'), gen_random_uuid(),
      'completed', false, sha256('f'), sha256('r'), 'canonical:1', now(), now(), now(),
      now() + CASE WHEN n % 1000 = 0 THEN -interval '1 minute' ELSE interval '1 hour' END,
      201, 'POST', '/v1/charges', gen_random_uuid()::text, 'h', decode(repeat('ab', 100), 'hex')
    FROM generate_series(1, $1::int) AS n`,
    [rows],
  );
  await harness.query(
    `INSERT INTO oncegate.record (scope, key, attempt, epoch, instance, state, had_credentials, fingerprint, raw_digest,
      fingerprint_rule, deadline, reserved_at, method, path, request_id)
    SELECT sha256(('p' || n)::bytea), 'key-' || n, gen_random_uuid(), nextval('oncegate.epoch'), gen_random_uuid(),
      'in_progress', false, sha256('f'), sha256('r'), 'canonical:1', now() + interval '1 minute', now(),
      'POST', '/v1/charges', gen_random_uuid()::text
    FROM generate_series(1, 50) AS n`,
  );
  await harness.query(
    `INSERT INTO oncegate.record (scope, key, attempt, epoch, instance, state, had_credentials, fingerprint, raw_digest,
      fingerprint_rule, deadline, reserved_at, method, path, request_id)
    SELECT sha256(('u' || n)::bytea), 'key-' || n, gen_random_uuid(), nextval('oncegate.epoch'), gen_random_uuid(),
      CASE WHEN n % 5 = 0 THEN 'dead_letter' ELSE 'unknown' END::oncegate.state, false, sha256('f'), sha256('r'),
      'canonical:1', now(), now(), 'POST', '/v1/charges', gen_random_uuid()::text
    FROM generate_series(1, 50) AS n`,
  );
}

const text = (value: string): string => `'${value}'`;
const bytes = (value: Buffer): string => `'\\x${value.toString('hex')}'::bytea`;
const uuid = (): string => text(randomUUID());
const list = (length: number, one: (index: number) => string): string =>
  `ARRAY[${Array.from({ length }, (_, index) => one(index + 1)).join()}]`;

/** Every statement that touches the table, with values as they come, and the index it has to go by. */
function cases(rows: number): [Statement, string[], string][] {
  const scopes = list(rows, (n) => bytes(digest(String(n))));
  const keys = list(rows, (n) => text(`key-${n}`));
  const uuids = list(rows, uuid);
  const words = (word: string) => list(rows, () => text(word));
  const blobs = list(rows, () => bytes(digest('x')));
  const flags = list(rows, () => 'false');
  const numbers = list(rows, () => '200::float8');
  const one = [bytes(digest('1')), text('key-1')];
  return [
    [
      reserve,
      [
        scopes,
        keys,
        uuids,
        uuids,
        flags,
        blobs,
        blobs,
        words('c'),
        numbers,
        words('t'),
        words('POST'),
        words('/'),
        words('r'),
        flags,
      ],
      'Conflict Arbiter Indexes: record_pkey',
    ],
    [read, [scopes, keys], 'using record_pkey'],
    [readWhole, one, 'using record_pkey'],
    [
      takeOver,
      [
        scopes,
        keys,
        uuids,
        words('1'),
        words('failed_retryable'),
        uuids,
        uuids,
        flags,
        blobs,
        blobs,
        words('c'),
        numbers,
        words('t'),
        words('POST'),
        words('/'),
        words('r'),
        flags,
      ],
      'using record_pkey',
    ],
    [confirm, [scopes, keys, uuids, words('in_progress')], 'using record_pkey'],
    [
      settle,
      [scopes, keys, uuids, words('completed'), numbers, blobs, blobs, flags, words('e'), numbers],
      'using record_pkey',
    ],
    [markDispatched, [scopes, keys, uuids], 'using record_'],
    [sweep, [scopes, keys, uuids, words('lease_over')], 'using record_'],
    [releaseUndispatched, [scopes, keys, uuids, words('lease_over')], 'using record_'],
    [releaseNeverSent, [scopes, keys, uuids, uuids], 'using record_'],
    [reap, [scopes, keys, uuids], 'using record_pkey'],
    [findSweepable, ['200'], 'record_in_progress'],
    [findReapable, ['1000'], 'using record_retained'],
  ];
}

/** The operator's: what each has to go by. None may read the whole table. */
function operatorCases(): [Statement, string[], RegExp[]][] {
  const one = [bytes(digest('1')), text('key-1')];
  const listing = (states: string) => [text(`{${states}}`), '0', 'NULL', 'NULL', '50'];
  const seen = (state: string) => [...one, uuid(), '1', text(state), uuid(), text('ann'), text('why')];
  const search = (prefix: string, key: string) => [prefix, key, 'NULL', 'NULL', 'NULL', '10'];
  const answer = ['201', bytes(digest('h')), bytes(digest('b')), '1000'];
  const named = [/using record_unknown/, /using record_in_progress/, /using record_pkey/];
  return [
    [listWaiting, listing('unknown'), [/using record_unknown/, /Index Cond: \(reserved_at <= /]],
    [listRunning, listing('in_progress'), [/record_in_progress/]],
    [listSettled, listing('failed_retryable'), [/Backward using record_retained/]],
    [findNamed, search(text('ab'), 'NULL'), named],
    [findNamed, search('NULL', text('key-1')), named],
    [viewAt, one, [/using record_pkey/]],
    [operatorComplete, [...seen('unknown'), ...answer], [/using record_/]],
    [operatorRelease, [...seen('unknown'), '1000'], [/using record_/]],
    [operatorPurge, seen('completed'), [/using record_/]],
    [findAuditLine, [...one, uuid()], [/using audit_pkey/]],
    [readAudit, one, [/using audit_pkey/]],
    [readLateAnswers, one, [/using late_answer_pkey/]],
    [
      takeCensus,
      [],
      [
        /Index Only Scan using record_unknown/,
        /Index Only Scan using record_in_progress/,
        /Index Cond: \(deadline < /,
      ],
    ],
  ];
}

async function planOf(client: Client, { name, text }: Statement, values: string[]): Promise<string> {
  await client.query(`PREPARE ${name} AS ${text}`);
  const given = values.length === 0 ? '' : ` (${values.join()})`;
  const { rows } = await client.query(`EXPLAIN EXECUTE ${name}${given}`);
  await client.query(`DEALLOCATE ${name}`);
  return rows.map((row) => row['QUERY PLAN']).join('\n');
}

t.test('on a table of some size every statement goes by its index', async (t) => {
  const harness = await postgresHarness(t);
  await fill(harness, 50_000);
  await harness.query(
    `INSERT INTO oncegate.audit (scope, key, id, actor, action, reason, attempt, epoch, from_state, to_state)
    SELECT scope, key, gen_random_uuid(), 'ann', 'complete', 'why', attempt, epoch, 'unknown', 'completed'
    FROM oncegate.record WHERE state = 'completed' LIMIT 5000`,
  );
  await harness.query(
    `INSERT INTO oncegate.late_answer (scope, key, attempt, request_id, outcome)
    SELECT scope, key, attempt, request_id, 'store' FROM oncegate.record WHERE state = 'completed' LIMIT 5000`,
  );
  await harness.query('VACUUM ANALYZE oncegate.record, oncegate.audit, oncegate.late_answer');
  const client = await connected(t, harness.url);

  for (const mode of ['force_generic_plan', 'force_custom_plan']) {
    for (const rows of [1, 30]) {
      t.test(`${mode}, ${rows} rows a batch`, async (t) => {
        await client.query(`SET plan_cache_mode = ${mode}`);
        for (const [statement, values, index] of cases(rows)) {
          const plan = await planOf(client, statement, values);
          t.match(plan, index, statement.label);
          t.notMatch(plan, /Seq Scan on record\b/, statement.label);
        }
      });
    }
  }

  t.test('the reaper looks only at what has expired, not at the whole index', async (t) => {
    await client.query('SET plan_cache_mode = force_generic_plan');
    t.match(await planOf(client, findReapable, ['1000']), /Index Cond: \(retain_until <= /);
  });

  for (const mode of ['force_generic_plan', 'force_custom_plan']) {
    t.test(`what people and gauges ask, ${mode}`, async (t) => {
      await client.query(`SET plan_cache_mode = ${mode}`);
      for (const [statement, values, patterns] of operatorCases()) {
        const plan = await planOf(client, statement, values);
        for (const pattern of patterns) t.match(plan, pattern, statement.label);
        t.notMatch(plan, /Seq Scan on record\b/, statement.label);
      }
    });
  }

  t.test("doctor's count of what is unknown", async (t) => {
    const { rows } = await client.query(`EXPLAIN ${countUnknown}`);
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    t.match(plan, /Index Only Scan using record_unknown/);
  });

  t.test('here the server keeps the plans', async (t) => {
    const store = harness.another();
    const scanned = await scannedBy(harness, async () => {
      await use(t, store, 20);
      await store.close(1_000);
    });
    t.equal(scanned, 0);
  });
});

t.test('plans that are kept go by the key', async (t) => {
  const harness = await postgresHarness(t);
  await fill(harness, 10_000);
  await harness.query('VACUUM ANALYZE oncegate.record');
  const client = await connected(t, harness.url);
  await client.query(keepPlans);
  const kept = [reserve, read, readWhole, takeOver, confirm, settle, markDispatched];
  for (const rows of [1, 30]) {
    for (const [statement, values] of cases(rows).filter(([one]) => kept.includes(one))) {
      const plan = await planOf(client, statement, values);
      t.notMatch(plan, /Seq Scan on record\b|Hash|Merge|Bitmap|Materialize/, statement.label);
      if (statement !== reserve) t.match(plan, /Index Cond: \(\(scope = .*key = /, statement.label);
    }
  }
});

/**
 * The plan that a server keeps was made for the table as it was. Made on an empty table and kept, it would scan all of
 * it for every batch until the next autoanalyze: 27 ms instead of 0.7 at 100,000 rows. See pool.ts.
 */
t.test('a table that was empty when the first statements came, and grows before any analyze', async (t) => {
  const harness = await postgresHarness(t);
  await harness.query('ALTER TABLE oncegate.record SET (autovacuum_enabled = off)');
  const store = harness.another();
  await use(t, store, 20);
  await fill(harness, 30_000);
  // Counted from here: a scan would read thirty thousand rows each time.
  const scanned = await scannedBy(harness, async () => {
    await use(t, store, 10);
    await store.close(1_000);
  });
  t.ok(scanned < 5_000, `${scanned} rows read by scans`);
});

t.test('a connection that found the table small looks again after a while, and stays', async (t) => {
  const harness = await postgresHarness(t);
  const options = { plans: 'kept', size: 1, name: 'test', durability: 'strict', connectMs: 3_000 } as const;
  const pool = new Pool({ ...options, url: harness.url });
  t.teardown(() => pool.end());
  const asked = statement('ask', `SELECT pg_backend_pid(), current_setting('plan_cache_mode')`);
  const [[backend, mode] = []] = await pool.query(asked, [], 1_000);
  t.equal(mode, 'auto');
  await fill(harness, 10_000);
  await harness.query('ANALYZE oncegate.record');
  for (let count = 1; count < 500; count += 1) await pool.query(asked, [], 1_000);
  t.strictSame(await pool.query(asked, [], 1_000), [[backend, 'force_generic_plan']]);
});

/** Rows of the table read by sequential scans, by all backends that have ended by then. */
async function scannedBy(harness: PostgresHarness, work: () => Promise<void>): Promise<number> {
  const count = async () => {
    // What this connection has read itself is told now, not at some later moment.
    await harness.query('SELECT pg_stat_force_next_flush()');
    await harness.query('SELECT pg_stat_clear_snapshot()');
    const [row] = await harness.query(
      `SELECT seq_tup_read FROM pg_stat_user_tables WHERE relid = 'oncegate.record'::regclass`,
    );
    return Number(row?.['seq_tup_read'] ?? 0);
  };
  const before = await count();
  await work();
  // A backend tells what it has counted when it ends.
  await until(async () => {
    const left = await harness.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'oncegate%'`,
    );
    return left.length === 0;
  });
  return (await count()) - before;
}

/** Each kind of call, a few at a time, as often as a server needs to settle on a plan of its own. */
async function use(t: Test, store: Store, rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    const all = await Promise.all([1, 2, 3].map(() => reserved(store)));
    const [first, second, third] = all as [(typeof all)[0], (typeof all)[0], (typeof all)[0]];
    const results = await Promise.all([
      store.completeIfHeld({ ...heldBy(first), answer: answer(), retentionMs }),
      store.releaseIfHeld({ ...heldBy(second), status: null, error: 'test', retentionMs }),
      store.markUnknownIfHeld({ ...heldBy(third), status: null, error: 'test' }),
    ]);
    if (results.some((result) => result.kind !== 'settled')) t.fail('not settled');
    await store.read(all);
    const next = reservation({ scope: second.scope, key: second.key });
    await store.takeOverIfUnchanged(await recordAt(store, second), next);
  }
}
