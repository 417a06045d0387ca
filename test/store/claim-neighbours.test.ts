import t, { type Test } from 'tap';
import { type PostgresHarness, postgresHarness } from './postgres-harness.ts';
import { heldBy, recordAt, reservation, reserved, retentionMs } from './samples.ts';

/** A trigger that raises, or a page that cannot be written: who asks for such a key must not cost others theirs. */
async function refusing(t: Test, event: 'INSERT' | 'UPDATE', code: string) {
  const harness = await postgresHarness(t);
  await harness.query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF NEW.key = 'bad' THEN RAISE EXCEPTION 'bad page' USING ERRCODE = '${code}'; END IF;
      RETURN NEW;
    END $$`);
  const refuse = () =>
    harness.query(
      `CREATE TRIGGER refuse BEFORE ${event} ON oncegate.record FOR EACH ROW EXECUTE FUNCTION refuse()`,
    );
  return { ...harness, refuse };
}

const keys = ['bad', ...Array.from({ length: 20 }, (_, n) => `key-${n}`)];
const expected = keys.map((key) => (key === 'bad' ? 'unavailable' : 'reserved'));

async function release({ stores }: PostgresHarness) {
  const [store] = stores;
  const all = await Promise.all(keys.map((key) => reserved(store, { key })));
  const released = { status: null, error: 'test', retentionMs };
  await Promise.all(all.map((one) => store.releaseIfHeld({ ...heldBy(one), ...released })));
  return await Promise.all(
    all.map(async (one) => ({ previous: await recordAt(store, one), scope: one.scope, key: one.key })),
  );
}

for (const code of ['XX001', 'P0001']) {
  t.test(`new keys: one that the server never takes (${code}) does not cost the others theirs`, async (t) => {
    const harness = await refusing(t, 'INSERT', code);
    await harness.refuse();
    const [store] = harness.stores;
    const results = await Promise.all(keys.map((key) => store.reserve(reservation({ key }))));
    t.same(
      results.map(({ kind }) => kind),
      expected,
    );
  });

  t.test(
    `released keys: one that the server never takes (${code}) does not cost the others theirs`,
    async (t) => {
      const harness = await refusing(t, 'UPDATE', code);
      const all = await release(harness);
      await harness.refuse();
      const [store] = harness.stores;
      const results = await Promise.all(
        all.map(({ previous, scope, key }) =>
          store.takeOverIfUnchanged(previous, reservation({ scope, key })),
        ),
      );
      t.same(
        results.map(({ kind }) => kind),
        expected,
      );
    },
  );

  t.test(`marks: one that the server never takes (${code}) does not cost the others theirs`, async (t) => {
    const harness = await refusing(t, 'UPDATE', code);
    const [store] = harness.stores;
    const all = await Promise.all(keys.map((key) => reserved(store, { key, marks: true })));
    await harness.refuse();
    const results = await Promise.all(all.map((one) => store.markDispatchedIfHeld(heldBy(one))));
    t.same(
      results.map(({ kind }) => kind),
      keys.map((key) => (key === 'bad' ? 'unavailable' : 'marked')),
    );
  });
}
