import t from 'tap';
import { ask, problemOf } from '../helpers/client.ts';
import { query, testDatabase } from '../helpers/postgres.ts';
import { recordOf } from '../helpers/records.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { until } from '../helpers/until.ts';
import { testUpstream } from '../helpers/upstream.ts';

t.test(
  'a reservation that came late is released by a clean stop: nobody else knows that it was never sent',
  async (t) => {
    const { url } = await testDatabase(t);
    const upstream = await testUpstream(t);
    const start = () =>
      sidecar(t, {
        databaseUrl: url,
        upstream: upstream.url,
        config: 'loops: { sweep: 60s }\nlease: 5s\n',
      });
    const one = await start();
    // Longer than a reservation is waited for.
    await query(
      url,
      'CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(5); RETURN NEW; END $$',
    );
    await query(
      url,
      'CREATE TRIGGER slow BEFORE INSERT ON oncegate.record FOR EACH ROW EXECUTE FUNCTION slow()',
    );
    t.equal(problemOf(await ask(`${one.dataUrl}/a`, { key: 'k' })).code, 'store_unavailable');
    await until('its row has come', async () => (await recordOf(url, 'k'))?.['state'] === 'in_progress');
    await query(url, 'DROP TRIGGER slow ON oncegate.record');
    await one.drain(true);
    t.match(await recordOf(url, 'k'), {
      state: 'failed_retryable',
      last_error: 'reserved but never forwarded',
    });
    const two = await start();
    t.equal((await ask(`${two.dataUrl}/a`, { key: 'k' })).status, 201);
    t.equal(upstream.executions.length, 1, 'it ran once');
  },
);
