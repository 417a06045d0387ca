import t from 'tap';
import { loopDone } from '../../src/events.ts';
import { ask, send } from '../helpers/client.ts';
import { testDatabase } from '../helpers/postgres.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { tcpProxy } from '../helpers/tcp-proxy.ts';
import { testUpstream } from '../helpers/upstream.ts';

/** `drain.max`, the 10 s that docs/deploy.md gives the store, and a busy machine. */
const longestMs = 1_000 + 10_000 + 5_000;

for (const runs of [true, false]) {
  t.test(`a store that hangs does not hold a drain up; a request runs: ${runs}`, async (t) => {
    const { url } = await testDatabase(t);
    const lane = await tcpProxy(t, { host: '127.0.0.1', port: Number(new URL(url).port) });
    const upstream = await testUpstream(t);
    const running = await sidecar(t, {
      databaseUrl: lane.through(url),
      upstream: upstream.url,
      config: 'loops: { sweep: 100ms }\ndrain: { delay: 0s, max: 1s }',
    });
    await ask(`${running.dataUrl}/a`, { key: 'before', body: '{}' });
    await new Promise<void>((resolve) => {
      const stop = loopDone.subscribe(({ loop }) => {
        if (loop !== 'sweeper') return;
        stop();
        resolve();
      });
    });
    const held = runs ? send(`${running.dataUrl}/a`, 'held', { steer: { hold: true } }) : null;
    const answered = held?.then(
      ({ status }) => status,
      () => 'cut',
    );
    if (runs) await upstream.received(2);
    lane.pause();
    upstream.letGo();
    const startMs = performance.now();
    await running.drain(true);
    const ms = performance.now() - startMs;
    t.ok(ms < longestMs, `${ms} ms`);
    if (runs) t.equal(await answered, 'cut');
    lane.resume();
  });
}
