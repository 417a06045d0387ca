import t, { type Test } from 'tap';
import { inProcess } from '../cli/in-process.ts';
import { problemOf, send } from '../helpers/client.ts';
import { query } from '../helpers/postgres.ts';
import { type RecordRow, recordOf } from '../helpers/records.ts';
import { type Sidecar, sidecar } from '../helpers/sidecar.ts';
import { until } from '../helpers/until.ts';
import { testUpstream } from '../helpers/upstream.ts';

/** A person settles by command what the running sidecar could not know, and clients get what follows from it. */
async function setUp(t: Test, config = '') {
  const upstream = await testUpstream(t);
  const running = await sidecar(t, { upstream: upstream.url, config });
  const url = `${running.dataUrl}/charges`;
  return { upstream, running, url };
}

const because = ['--reason', 'asked the bank', '--yes'];

function keys(running: Sidecar, ...args: string[]) {
  return inProcess(['keys', ...args], { DATABASE_URL: running.databaseUrl });
}

/** The id of the only record that waits. */
async function waitingId(running: Sidecar): Promise<string> {
  const listed = JSON.parse((await keys(running, 'list', '--json')).out) as { id: string }[];
  if (listed.length !== 1) throw new Error(`${listed.length} wait`);
  return listed[0]?.id ?? '';
}

const rowOf = async (running: Sidecar, key: string) =>
  (await recordOf(running.databaseUrl, key)) as RecordRow;

t.test('it ran: every retry gets the given answer, byte for byte, and nothing runs', async (t) => {
  const { upstream, running, url } = await setUp(t);
  t.equal((await send(url, 'paid', { steer: { cut: true } })).status, 502);
  t.equal(problemOf(await send(url, 'paid')).code, 'outcome_unknown');
  const id = await waitingId(running);
  t.ok(
    running.lines.some((line) => line.includes(`"keyHash":"${id}"`)),
    'the log calls it the same',
  );
  const body = '{"id":"ch_7",  "amount":1}\n';
  const headers = ['--header', 'Content-Type: application/json', '--header', 'Location: /charges/ch_7'];
  const answer = ['--completed', '--status', '201', '--retention', '1d', ...headers, '--body', body];
  t.match(await keys(running, 'resolve', id, ...answer, ...because), { code: 0, out: /^done/ });
  for (let retries = 0; retries < 2; retries += 1) {
    const replay = await send(url, 'paid');
    t.equal(replay.status, 201);
    t.strictSame(replay.body, Buffer.from(body));
    t.match(replay.headers, {
      'content-type': 'application/json',
      location: '/charges/ch_7',
      'idempotency-status': 'replayed',
      'idempotent-replayed': 'true',
    });
  }
  t.equal(upstream.countOf('paid'), 1);
  t.match(await keys(running, 'list'), { out: /^no such record/ });
});

t.test('it did not run: the retry runs as a new attempt, and the old one comes too late', async (t) => {
  const { upstream, running, url } = await setUp(t, 'upstream: { timeout: 30s }');
  const first = send(url, 'again', { steer: { hold: true } });
  await upstream.received(1);
  const { databaseUrl } = running;
  // As the sweeper of another instance would, had this one been cut off.
  await query(databaseUrl, `UPDATE oncegate.record SET state = 'unknown' WHERE key = 'again'`);
  const before = await rowOf(running, 'again');
  t.equal((await keys(running, 'resolve', await waitingId(running), '--released', ...because)).code, 0);
  const retry = await send(url, 'again', { steer: { body: 'second' } });
  t.match(retry, { status: 201, body: Buffer.from('second') });
  t.equal(retry.headers['idempotency-status'], 'executed');
  const after = await rowOf(running, 'again');
  t.ok(BigInt(after.epoch) > BigInt(before.epoch));
  t.ok(
    Number(upstream.executions[1]?.headers['oncegate-epoch']) >
      Number(upstream.executions[0]?.headers['oncegate-epoch']),
  );

  upstream.letGo();
  t.strictSame((await first).body, Buffer.from('second'), 'its client gets what is kept');
  t.strictSame((await send(url, 'again')).body, Buffer.from('second'));
  const shown = await until('the evidence', async () => {
    const { out } = await keys(running, 'show', '--key', 'again', '--path', '/charges');
    return out.includes('late answer') && out;
  });
  t.match(shown, /audit .* release, unknown → failed_retryable[^]*late answer .*it may have run twice/);
});

t.test('released after a status that asks for credentials: it runs for the same request only', async (t) => {
  const { upstream, running, url } = await setUp(t);
  t.equal((await send(url, 'once', { steer: { cut: true }, body: 'pay 10' })).status, 502);
  // As where the head of a 401 came and the rest did not.
  await query(running.databaseUrl, `UPDATE oncegate.record SET status = 401 WHERE key = 'once'`);
  t.equal((await keys(running, 'resolve', await waitingId(running), '--released', ...because)).code, 0);
  t.equal(problemOf(await send(url, 'once', { body: 'pay 99' })).code, 'key_reused');
  t.equal(upstream.countOf('once'), 1);
});

t.test('purged: 409 while an old answer may still be about, then it runs', async (t) => {
  const { upstream, running, url } = await setUp(t);
  t.equal((await send(url, 'secret', { steer: { body: 'old' } })).status, 201);
  const purge = ['purge', '--key', 'secret', '--path', '/charges'];
  t.match(await keys(running, ...purge, ...because), { code: 0 });
  const blocked = await send(url, 'secret');
  t.equal(blocked.status, 409);
  t.equal(problemOf(blocked).code, 'in_progress');
  t.equal(blocked.headers['retry-after'], '1');
  t.equal(upstream.countOf('secret'), 1);
  t.equal(problemOf(await send(url, 'secret', { body: '{"amount":2}' })).code, 'key_reused');
  await query(running.databaseUrl, `UPDATE oncegate.record SET blocked_until = clock_timestamp()`);
  t.match(await send(url, 'secret', { steer: { body: 'new' } }), { status: 201, body: Buffer.from('new') });
  t.equal(upstream.countOf('secret'), 2);
});

t.test("one tenant's key is settled, another's of the same name is not touched", async (t) => {
  const { running, url } = await setUp(t, 'tenant: { from: { header: X-Tenant } }');
  const as = (tenant: string, cut = false) =>
    send(url, 'same', { headers: { 'X-Tenant': tenant }, ...(cut ? { steer: { cut } } : {}) });
  t.equal((await as('acme', true)).status, 502);
  t.equal((await as('umbrella', true)).status, 502);
  const listed = JSON.parse((await keys(running, 'list', '--tenant', 'acme', '--json')).out) as {
    id: string;
  }[];
  t.equal(listed.length, 1);
  const answer = ['--completed', '--status', '200', '--retention', '1d', '--body', 'for acme'];
  t.equal((await keys(running, 'resolve', listed[0]?.id ?? '', ...answer, ...because)).code, 0);
  t.strictSame((await as('acme')).body, Buffer.from('for acme'));
  t.equal(problemOf(await as('umbrella')).code, 'outcome_unknown');
});

t.test('the gauges follow', async (t) => {
  const { running, url } = await setUp(t, 'loops: { sweep: 1s }');
  const unknown = async () =>
    /oncegate_records\{state="unknown"\} (\d+)/.exec(
      await (await fetch(`${running.opsUrl}/metrics`)).text(),
    )?.[1];
  await until('a first census', async () => (await unknown()) === '0');
  await send(url, 'lost', { steer: { cut: true } });
  await until('one is unknown', async () => (await unknown()) === '1');
  await keys(running, 'resolve', await waitingId(running), '--released', ...because);
  await until('none is', async () => (await unknown()) === '0');
});
