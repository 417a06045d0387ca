import { randomUUID } from 'node:crypto';
import t from 'tap';
import { requestDone } from '../../src/events.ts';
import { ask } from '../helpers/client.ts';
import { testDatabase } from '../helpers/postgres.ts';
import { countRecords, recordOf } from '../helpers/records.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { tcpProxy } from '../helpers/tcp-proxy.ts';
import { until } from '../helpers/until.ts';
import { testUpstream } from '../helpers/upstream.ts';
import { connect, exchange } from '../proxy/pass-through-server.ts';
import { Guarded } from './guarded.ts';

/** The order of the checks is part of the contract: each request here has every fault from its row on. */

for (const dialect of ['ietf', 'stripe'] as const) {
  t.test(`the first fault is the one that is told, ${dialect}`, async (t) => {
    const upstream = await testUpstream(t);
    const { url } = await testDatabase(t);
    const lane = await tcpProxy(t, { host: '127.0.0.1', port: Number(new URL(url).port) });
    const running = await sidecar(t, {
      upstream: upstream.url,
      databaseUrl: lane.through(url),
      config: `
tenant: { from: { header: X-Tenant } }
defaults: { dialect: ${dialect}, maxRequestBody: 10b, inFlight: { wait: 0s } }`,
    });
    const guarded = new Guarded(dialect, upstream, running);
    const credentials = { Authorization: 'Bearer x' };
    const running1 = randomUUID();
    const first = guarded.send(running1, { headers: credentials, body: '1', steer: { hold: true } });
    await upstream.received(1);
    guarded.isProblem(t, await guarded.send(running1, { body: '2' }), 'key_reused');
    guarded.isProblem(t, await guarded.send(running1, { body: '1' }), 'caller_differs');
    guarded.isProblem(t, await guarded.send(running1, { body: '1', headers: credentials }), 'in_progress');
    upstream.letGo();
    t.equal((await first).status, 201);
    guarded.isProblem(t, await guarded.send(running1, { body: '2' }), 'key_reused');
    guarded.isProblem(t, await guarded.send(running1, { body: '1' }), 'caller_differs');

    lane.refuse(true);
    lane.cutAll();
    const large = 'x'.repeat(11);
    const at = `${running.dataUrl}/a`;
    guarded.isProblem(t, await ask(at, { body: large }), 'key_missing');
    guarded.isProblem(t, await ask(at, { body: large, key: 'a b' }), 'key_invalid');
    guarded.isProblem(t, await ask(at, { body: large, key: 'a' }), 'tenant_missing');
    guarded.isProblem(t, await guarded.send('a', { body: large }), 'body_too_large');
    guarded.isProblem(t, await guarded.send('a', { body: '1' }), 'store_unavailable');
    guarded.isProblem(t, await guarded.send(running1, { body: '2' }), 'store_unavailable');
    t.equal(upstream.executions.length, 1, 'not a byte went upstream');

    lane.refuse(false);
    const again = await until('the store is back', async () => {
      const answer = await guarded.send('a', { body: '1' });
      return answer.status === 503 ? null : answer;
    });
    t.equal(again.status, 201, 'and the key that got 503 runs');
    t.equal(upstream.countOf('a'), 1);
  });
}

t.test('a body that does not come whole reserves nothing', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl, databaseUrl } = await sidecar(t, { upstream: upstream.url });
  const verdicts: string[] = [];
  t.teardown(requestDone.subscribe(({ verdict }) => verdicts.push(verdict)));
  const port = Number(new URL(dataUrl).port);
  const head = 'POST /a HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\n';
  const short = `${head}Content-Length: 10\r\n\r\n{"a":`;

  const ended = await connect(t, port);
  const said: Buffer[] = [];
  ended.on('data', (chunk) => said.push(chunk));
  ended.end(short);
  await new Promise((resolve) => ended.once('close', resolve));
  t.match(Buffer.concat(said).toString(), /^HTTP\/1\.1 400 /, 'ended early');

  const badChunk = `${head}Transfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\nzz\r\n`;
  t.match(await exchange(t, port, badChunk), /^HTTP\/1\.1 400 /, 'a chunk that is none');

  const gone = await connect(t, port);
  gone.write(short);
  gone.resetAndDestroy();

  await until('all three were given up', () => verdicts.length === 3);
  t.same(verdicts, ['body_incomplete', 'body_incomplete', 'body_incomplete']);
  const whole = await ask(`${dataUrl}/a`, { key: 'k2', body: '{"a":1}' });
  t.equal(whole.status, 201);
  t.equal(await recordOf(databaseUrl, 'k'), undefined);
  t.equal(await countRecords(databaseUrl), 1);
  t.equal(upstream.executions.length, 1);
});
