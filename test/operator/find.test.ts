import t from 'tap';
import { createMemos } from '../../src/core/memos.ts';
import { hashOf, type RecordId } from '../../src/core/record.ts';
import { scopeOf } from '../../src/core/scope.ts';
import { find, findAnywhere } from '../../src/operator/find.ts';
import { type Lookup, lookupFor, type Named, precisionFor } from '../../src/operator/lookup.ts';
import { shortId } from '../../src/operator/short-id.ts';
import { completed, doubtful, operatorAt } from '../store/operator-harness.ts';
import { someId } from '../store/samples.ts';
import { type Room, room, settings } from './room.ts';

let here: Room;
t.before(async () => {
  here = await room(t);
});
t.beforeEach(() => here.harness.clear());

function lookup(named: Named): Lookup {
  const result = lookupFor(settings(), named, precisionFor({ kind: 'show' }));
  if (result.kind !== 'lookup') throw new Error(result.kind);
  return result.lookup;
}

const byId = (id: string) => lookup({ kind: 'id', id });
const byKey = (key: string, path: string | null = null) =>
  lookup({ kind: 'key', key, tenant: null, path, method: null });
const deps = () => ({ store: here.store, settings: settings() });

t.test('what waits is found by the beginning of its ID', async (t) => {
  const wanted = await doubtful(here.sidecar);
  const found = { kind: 'one', record: { key: wanted.key, attempt: wanted.attempt, state: 'unknown' } };
  for (const id of [shortId(wanted).slice(0, 4), shortId(wanted).toUpperCase(), hashOf(wanted)])
    t.match(await find(deps(), byId(id)), found, id);
});

t.test(
  'what is settled takes a whole ID, and a read of all records that the caller decides on',
  async (t) => {
    const { key, ...id } = await completed(here.sidecar);
    const start = shortId({ ...id, key });
    t.strictSame(await find(deps(), byId(start.slice(0, 15))), { kind: 'none_begins', fullLetters: 16 });
    for (const named of [byId(start), byKey(key)]) {
      const found = await find(deps(), named);
      t.match(found, { kind: 'not_indexed', aboutRecords: Number, isSlow: false });
      if (found.kind !== 'not_indexed') continue;
      t.match(await findAnywhere(deps(), found.search), { kind: 'one', record: { key, state: 'completed' } });
    }
    const nowhere = await find(deps(), byId(shortId(someId())));
    t.equal(nowhere.kind, 'not_indexed');
    if (nowhere.kind === 'not_indexed')
      t.strictSame(await findAnywhere(deps(), nowhere.search), { kind: 'none' });
  },
);

t.test('a read of very many records is called slow', async (t) => {
  const pretend = (records: number) =>
    here.harness.query(`UPDATE pg_class SET reltuples = $1 WHERE oid = 'oncegate.record'::regclass`, [
      records,
    ]);
  t.teardown(() => pretend(-1));
  for (const [aboutRecords, isSlow] of [
    [100_000, false],
    [100_001, true],
  ] as const) {
    await pretend(aboutRecords);
    t.match(await find(deps(), byKey('none')), { kind: 'not_indexed', aboutRecords, isSlow });
  }
});

t.test('several: which, and whether there may be more', async (t) => {
  const path = '/charges';
  const at = (method: string): Partial<RecordId> & { method: string; path: string } => ({
    scope: scopeOf(createMemos(), [null, method, path]),
    key: 'order-1',
    method,
    path,
  });
  await doubtful(here.sidecar, at('POST'));
  t.match(await find(deps(), byKey('order-1', path)), { kind: 'one', record: { method: 'POST' } });
  await completed(here.sidecar, at('PATCH'));
  t.match(await find(deps(), byKey('order-1', path)), {
    kind: 'several',
    isCut: false,
    records: [{ method: 'POST' }, { method: 'PATCH' }],
  });
  t.strictSame(await find(deps(), byKey('order-1', '/refunds')), { kind: 'none' });
  for (let n = 0; n < 10; n += 1) await doubtful(here.sidecar, { key: 'order-2' });
  const many = await find(deps(), byKey('order-2'));
  t.match(many, { kind: 'several', isCut: true });
  t.equal(many.kind === 'several' && many.records.length, 10);
});

t.test('settings that are not the sidecars’ place no key', async (t) => {
  await here.harness.query(`INSERT INTO oncegate.identity (settings) VALUES ('tenant=header:x-tenant')`);
  t.teardown(() => here.harness.query('DELETE FROM oncegate.identity'));
  t.strictSame(await find(deps(), byKey('order-1', '/charges')), {
    kind: 'other_identity',
    inStore: 'tenant=header:x-tenant',
    inSettings: settings().identity,
  });
  const wanted = await doubtful(here.sidecar);
  t.equal((await find(deps(), byId(shortId(wanted)))).kind, 'one', 'an ID means the same under any settings');
});

t.test('a store that is away rejects', async (t) => {
  const store = operatorAt(t, 'postgres://127.0.0.1:1/none');
  await t.rejects(find({ store, settings: settings() }, byId('abcd')), { code: 'store_unavailable' });
});
