import t from 'tap';
import { problemOf, send } from '../helpers/client.ts';
import { query } from '../helpers/postgres.ts';
import { recordOf } from '../helpers/records.ts';
import { sidecar, sidecarProcess } from '../helpers/sidecar.ts';
import { until } from '../helpers/until.ts';
import { testUpstream } from '../helpers/upstream.ts';

const config = `
lease: 1s
loops: { sweep: 100ms }
upstream: { connections: 1, timeout: 5m }`;

t.test(
  'a process that slept past its lease sends nothing any more, and its late answer does not win',
  async (t) => {
    const upstream = await testUpstream(t);
    const sleeper = await sidecarProcess(t, { upstream: upstream.url, config });
    const { databaseUrl } = sleeper;
    const other = await sidecar(t, { upstream: upstream.url, databaseUrl, config });
    const stateOf = async (key: string) => (await recordOf(databaseUrl, key))?.state;

    const sent = send(`${sleeper.dataUrl}/a`, 'sent', { steer: { hold: true, body: 'of the sleeper' } });
    await upstream.received(1);
    const [held] = await query(databaseUrl, `SELECT instance FROM oncegate.record WHERE key = 'sent'`);
    const queued = send(`${sleeper.dataUrl}/a`, 'queued');
    await until(
      'reserved, and in the queue behind the first',
      async () => (await stateOf('queued')) === 'in_progress',
    );
    // The one connection is taken: whatever was written in this time went into the queue.
    await send(`${sleeper.dataUrl}/a`, 'get', { method: 'GET' });
    sleeper.kill('SIGSTOP');

    for (const key of ['sent', 'queued']) {
      await until('swept by the other', async () => (await stateOf(key)) === 'unknown');
      t.equal(problemOf(await send(`${other.dataUrl}/a`, key)).code, 'outcome_unknown');
    }
    t.same([upstream.countOf('sent'), upstream.countOf('queued')], [1, 0]);

    // A person has looked, and frees both; retries take them over.
    await query(
      databaseUrl,
      `UPDATE oncegate.record SET state = 'failed_retryable', retain_until = clock_timestamp() + interval '1 d'`,
    );
    const steer = { body: 'of the other' };
    const freed = await send(`${other.dataUrl}/a`, 'queued', { steer });
    t.same([freed.status, freed.headers['idempotency-status']], [201, 'executed']);
    const taken = send(`${other.dataUrl}/a`, 'sent', { steer: { ...steer, hold: true } });
    await until('upstream again', () => upstream.countOf('sent') === 2);

    sleeper.kill('SIGCONT');
    upstream.letGo(1);
    const [first, second] = await Promise.all([sent, queued]);
    t.equal(problemOf(first).code, 'in_progress', 'another attempt has the key');
    upstream.letGo();
    t.same([(await taken).status, (await taken).headers['idempotency-status']], [201, 'executed']);
    t.equal(upstream.countOf('queued'), 1, 'it was not sent after all');
    t.not(second.headers['idempotency-status'], 'executed');
    await until('it says so', () => sleeper.lines.some((line) => line.includes('late answer refused')));
    const requestLine = await until('and of the request', () =>
      sleeper.lines.find((line) => line.includes('"outcome":"refused"')),
    );
    t.equal(
      JSON.parse(requestLine).instance,
      held?.['instance'],
      'as the record named it, whatever lease it has now',
    );
    for (const key of ['sent', 'queued']) {
      const retry = await until('it has a lease again', async () => {
        const answer = await send(`${sleeper.dataUrl}/a`, key);
        return answer.status !== 503 && answer;
      });
      t.same([retry.status, retry.body.toString()], [201, 'of the other']);
    }
    t.same([upstream.countOf('sent'), upstream.countOf('queued')], [2, 1]);
  },
);
