import { readdirSync } from 'node:fs';
import t, { type Test } from 'tap';
import { migrateUp } from '../../src/store/postgres/migrate.ts';
import { PostgresStore } from '../../src/store/postgres/postgres.ts';
import type { Statement } from '../../src/store/postgres/sql/statement.ts';
import { type OwnServer, ownServer, query } from '../helpers/postgres.ts';
import { until } from '../helpers/until.ts';
import { by, doubtful, operatorAt, viewOf } from './operator-harness.ts';
import { answer, heldBy, recordAt, reservation, reserved, retentionMs } from './samples.ts';

/**
 * A server that waits for a synchronous standby which is not there, and somebody who cancels each wait: the server then
 * reports success, with warning 01000. The role hides warnings.
 */
let server: OwnServer;
let url: string;
t.before(async () => {
  server = await ownServer(t);
  await migrateUp(server.url);
  await query(server.url, `CREATE ROLE app SUPERUSER LOGIN PASSWORD 'app'`);
  await query(server.url, 'ALTER ROLE app SET client_min_messages = error');
  const app = new URL(server.url);
  app.username = 'app';
  app.password = 'app';
  url = app.href;
});

function storeOf(t: Test): PostgresStore {
  const store = new PostgresStore({ url, poolSize: 6, durability: 'strict' });
  t.teardown(() => store.close(0));
  return store;
}

async function setStandby(names: string): Promise<void> {
  await query(server.url, `ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
  await query(server.url, 'SELECT pg_reload_conf()');
  // Each server process reads its new settings before its next statement or the one after.
  await until('the new setting is read', async () => {
    const [row] = await query(server.url, `SELECT current_setting('synchronous_standby_names') AS names`);
    return row?.['names'] === names;
  });
}

/** The result of `work`, or `still waiting` once three of its commits were cancelled. */
async function cancelling<T>(t: Test, work: () => Promise<T>): Promise<T | 'still waiting'> {
  await setStandby('nobody');
  t.teardown(() => setStandby(''));
  let result: { readonly value: T } | null = null;
  void work().then(
    (value) => (result = { value }),
    (error) => (result = { value: error as T }),
  );
  let cancelled = 0;
  await until('an answer, or three cancelled waits', async () => {
    if (result !== null) return true;
    const rows = await query(
      server.url,
      `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`,
    );
    cancelled += rows.length;
    return cancelled >= 3;
  });
  await setStandby('');
  return (result as { readonly value: T } | null)?.value ?? 'still waiting';
}

t.test('a reservation is not reserved', async (t) => {
  const store = storeOf(t);
  await store.check();
  const wanted = reservation();
  t.match(await cancelling(t, () => store.reserve(wanted)), { kind: 'unavailable' });
});

t.test('a key is not taken over', async (t) => {
  const store = storeOf(t);
  const first = await reserved(store);
  await store.releaseIfHeld({ ...heldBy(first), status: null, error: 'not sent', retentionMs });
  const record = await recordAt(store, first);
  const next = reservation({ scope: first.scope, key: first.key });
  const result = await cancelling(t, () => store.takeOverIfUnchanged(record, next));
  t.match(result, { kind: 'unavailable' });
});

t.test('an attempt is not marked', async (t) => {
  const store = storeOf(t);
  const wanted = await reserved(store, { marks: true });
  const result = await cancelling(t, () => store.markDispatchedIfHeld(heldBy(wanted)));
  t.match(result, { kind: 'unavailable' });
});

t.test('a completion is not settled', async (t) => {
  const store = storeOf(t);
  const wanted = await reserved(store);
  const settlement = { ...heldBy(wanted), answer: answer(), retentionMs };
  t.equal(await cancelling(t, () => store.completeIfHeld(settlement)), 'still waiting');
});

t.test('a completed record is not handed out', async (t) => {
  const store = storeOf(t);
  const wanted = await reserved(store);
  await store.completeIfHeld({ ...heldBy(wanted), answer: answer(), retentionMs });
  t.match(await cancelling(t, () => store.read([wanted])), { code: 'store_unavailable' });
});

t.test('a lease is not opened', async (t) => {
  const store = storeOf(t);
  await store.check();
  const instance = reservation().instance;
  t.match(await cancelling(t, () => store.openLease(instance, 60_000)), { code: 'store_unavailable' });
});

t.test('an operator is not told that it was done', async (t) => {
  const operator = operatorAt(t, url);
  const wanted = await doubtful(storeOf(t));
  const seen = await viewOf(operator, wanted);
  const result = await cancelling(t, () => operator.releaseIfUnchanged(seen, by, retentionMs));
  t.match(result, { kind: 'unconfirmed' });
});

t.test('an identity is not accepted', async (t) => {
  const result = await cancelling(t, () => migrateUp(url, { acceptIdentity: 'another' }));
  t.match(result, { code: 'store_unreachable', message: /standby/ });
});

t.test('every statement that writes shows warnings', async (t) => {
  const folder = new URL('../../src/store/postgres/sql/', import.meta.url);
  let writes = 0;
  for (const file of readdirSync(folder)) {
    const exported: Record<string, unknown> = await import(new URL(file, folder).href);
    for (const [name, one] of Object.entries(exported)) {
      const { text } = one as Partial<Statement>;
      if (text === undefined || !/\b(INSERT|UPDATE|DELETE|pg_logical_emit_message)\b/.test(text)) continue;
      writes += 1;
      t.match(text, `set_config('client_min_messages', 'warning', true)`, `${file}: ${name}`);
    }
  }
  t.ok(writes >= 15, 'and they were found');
});
