import t, { type Test } from 'tap';
import { type PostgresHarness, postgresHarness } from './postgres-harness.ts';
import { answer, heldBy, recordAt, reserved, retentionMs } from './samples.ts';

/** A trigger that raises, or a page that cannot be read: a pass meets such a row each time, and must get past it. */

async function refusing(t: Test, code: string): Promise<PostgresHarness> {
  const harness = await postgresHarness(t);
  await harness.query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF OLD.key = 'bad' THEN RAISE EXCEPTION 'bad page' USING ERRCODE = '${code}'; END IF;
      IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
      RETURN NEW;
    END $$`);
  return harness;
}

function refuse(harness: PostgresHarness): Promise<unknown> {
  return harness.query(
    'CREATE TRIGGER refuse BEFORE UPDATE OR DELETE ON oncegate.record FOR EACH ROW EXECUTE FUNCTION refuse()',
  );
}

for (const code of ['XX001', 'P0001']) {
  t.test(`sweep: a row that the server never takes (${code}) does not hold the others`, async (t) => {
    const harness = await refusing(t, code);
    const [store] = harness.stores;
    await refuse(harness);
    const bad = await reserved(store, { key: 'bad' });
    const others = await Promise.all(Array.from({ length: 5 }, () => reserved(store)));
    const swept = await store.sweep(100);
    t.same(new Set(swept.map((one) => one.attempt)), new Set(others.map((one) => one.attempt)));
    t.equal((await recordAt(store, bad)).state, 'in_progress');
  });

  t.test(`never sent: a row that the server never takes (${code}) does not hold the others`, async (t) => {
    const harness = await refusing(t, code);
    const [store] = harness.stores;
    await refuse(harness);
    const all = await Promise.all(['bad', 'a', 'b'].map((key) => reserved(store, { key })));
    t.same(await store.releaseIfNeverSent(all), ['locked', 'released', 'released']);
  });

  t.test(`reap: a row that the server never takes (${code}) does not hold the others`, async (t) => {
    const harness = await refusing(t, code);
    const [store] = harness.stores;
    for (const key of ['bad', 'a', 'b']) {
      const wanted = await reserved(store, { key });
      await store.completeIfHeld({ ...heldBy(wanted), answer: answer(), retentionMs });
      await harness.moveTimes(wanted, { retainUntilMs: -1 });
    }
    await refuse(harness);
    t.equal(await store.reap(100), 2);
  });
}
