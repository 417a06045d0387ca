import t from 'tap';
import { until } from '../helpers/until.ts';
import { postgresHarness } from './postgres-harness.ts';
import { answer, heldBy, reserved, retentionMs } from './samples.ts';

for (const code of ['XX001', '57014', 'P0001']) {
  t.test(`a row that the server never takes (${code}) does not hold those that came with it`, async (t) => {
    const harness = await postgresHarness(t);
    await harness.query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        IF NEW.key = 'bad' THEN RAISE EXCEPTION 'bad page' USING ERRCODE = '${code}'; END IF;
        RETURN NEW;
      END $$`);
    await harness.query(
      'CREATE TRIGGER refuse BEFORE UPDATE ON oncegate.record FOR EACH ROW EXECUTE FUNCTION refuse()',
    );
    const store = harness.another();
    const bad = await reserved(store, { key: 'bad' });
    const others = await Promise.all(Array.from({ length: 20 }, () => reserved(store)));
    let settled = 0;
    for (const held of [bad, ...others]) {
      void store.completeIfHeld({ ...heldBy(held), answer: answer(), retentionMs }).then(({ kind }) => {
        if (kind === 'settled') settled += 1;
      });
    }
    await until('its neighbours are settled', () => settled === others.length);
    t.equal(store.unsettled, 1);
  });
}
