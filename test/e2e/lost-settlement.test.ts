import t from 'tap';
import { loopDone } from '../../src/events.ts';
import { problemOf, send } from '../helpers/client.ts';
import { loseSettlement, passDeadline, recordOf } from '../helpers/records.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { until } from '../helpers/until.ts';
import { testUpstream } from '../helpers/upstream.ts';

const config = 'loops: { sweep: 100ms }\ndefaults: { inFlight: { wait: 0s } }';

/** Two whole passes of the sweeper that begin after this call. */
async function swept(): Promise<void> {
  let left = 3;
  await new Promise<void>((resolve) => {
    const stop = loopDone.subscribe(({ loop, error }) => {
      if (loop !== 'sweeper' || error !== null) return;
      left -= 1;
      if (left > 0) return;
      stop();
      resolve();
    });
  });
}

const endings = { completed: 201, unknown: 502, failed_retryable: 429 };

t.test('a failover loses what settled a key: it never runs again by itself', async (t) => {
  for (const [ending, status] of Object.entries(endings))
    await t.test(ending, async (t) => {
      const upstream = await testUpstream(t);
      const { dataUrl, databaseUrl } = await sidecar(t, { upstream: upstream.url, config });
      const url = `${dataUrl}/a`;
      await send(url, 'k', { steer: { status } });
      const { state, attempt } = await until('settled', () => recordOf(databaseUrl, 'k'));
      t.equal(state, ending);
      await loseSettlement(databaseUrl, 'k');
      await swept();
      t.match(await recordOf(databaseUrl, 'k'), { state: 'in_progress', attempt }, 'nobody frees it');
      const early = await send(url, 'k');
      t.same([early.status, problemOf(early).code], [409, 'in_progress']);
      await passDeadline(databaseUrl, 'k');
      await until('swept', async () => (await recordOf(databaseUrl, 'k'))?.state === 'unknown');
      const late = await send(url, 'k');
      t.same([late.status, problemOf(late).code], [409, 'outcome_unknown']);
      t.equal(upstream.countOf('k'), 1, 'sent once');
    });
});
