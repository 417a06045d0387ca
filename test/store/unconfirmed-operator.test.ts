import t, { type Test } from 'tap';
import { serverMessage, type TcpProxy, tcpProxy } from '../helpers/tcp-proxy.ts';
import { until } from './fault-harness.ts';
import { by, doubtful, given, operatorAt, viewOf } from './operator-harness.ts';
import { type PostgresHarness, postgresHarness } from './postgres-harness.ts';
import { recordAt, retentionMs } from './samples.ts';

/** A person's decision whose answer does not arrive: done, not done, or an honest "cannot tell"; never twice. */
let harness: PostgresHarness;
t.before(async () => {
  harness = await postgresHarness(t);
});

/** Only a change has it on the wire. */
const change = 'INSERT INTO oncegate.audit';
const timeouts = { settleMs: 1_000 };

async function setUp(t: Test) {
  const { hostname, port } = new URL(harness.url);
  const proxy: TcpProxy = await tcpProxy(t, { host: hostname, port: Number(port) });
  const shaky = operatorAt(t, proxy.through(harness.url), { timeouts });
  const steady = operatorAt(t, harness.url);
  const [store] = harness.stores;
  const wanted = await doubtful(store);
  // Through the proxy: the questions asked of a new connection must not fall into a trap.
  const seen = await viewOf(shaky, wanted);
  const lines = async () => (await steady.history(wanted)).audit.length;
  return { proxy, shaky, steady, store, wanted, seen, lines };
}

t.test('the answer is lost after the commit: done, once', async (t) => {
  const { proxy, shaky, seen, store, wanted, lines } = await setUp(t);
  let confirmed = false;
  proxy.onceClientSends((chunk) => {
    confirmed ||= chunk.includes('SET attempt = record.attempt');
    return false;
  }, 'hold');
  const lost = proxy.onceServerSends(serverMessage('C', 'INSERT'), 'cut-before');
  const result = await shaky.completeIfUnchanged(seen, by, given);
  await lost.fired;
  t.match(result, { kind: 'done', record: { state: 'completed' } });
  t.ok(confirmed, 'what is visible counts only after an acknowledged write');
  t.strictSame((await recordAt(store, wanted)).answer, given.answer);
  t.equal(await lines(), 1);
});

t.test('the statement never arrives: sent again, done, once', async (t) => {
  const { proxy, shaky, seen, store, wanted, lines } = await setUp(t);
  const lost = proxy.onceClientSends(change, 'cut-before');
  t.match(await shaky.releaseIfUnchanged(seen, by, retentionMs), { kind: 'done' });
  await lost.fired;
  t.equal((await recordAt(store, wanted)).state, 'failed_retryable');
  t.equal(await lines(), 1);
});

t.test('the server is away from then on: cannot tell, and says so, whether it was done or not', async (t) => {
  for (const isDone of [true, false]) {
    const { proxy, shaky, seen, store, wanted, lines } = await setUp(t);
    const lost = isDone
      ? proxy.onceServerSends(serverMessage('C', 'INSERT'), 'cut-before')
      : proxy.onceClientSends(change, 'cut-before');
    proxy.refuse(true);
    t.match(await shaky.releaseIfUnchanged(seen, by, retentionMs), { kind: 'unconfirmed' });
    await lost.fired;
    t.equal((await recordAt(store, wanted)).state, isDone ? 'failed_retryable' : 'unknown');
    t.equal(await lines(), isDone ? 1 : 0);
  }
});

t.test('lost, and somebody else decides meanwhile: refused, and nothing of it comes later', async (t) => {
  const { proxy, shaky, steady, seen, store, wanted, lines } = await setUp(t);
  const ghost = proxy.onceClientSends(change, 'hold');
  const result = shaky.releaseIfUnchanged(seen, by, retentionMs);
  await ghost.fired;
  t.equal((await steady.completeIfUnchanged(seen, by, given)).kind, 'done');
  t.match(await result, { kind: 'refused', record: { state: 'completed' } });
  const { open } = proxy.counts();
  ghost.release();
  await until(() => proxy.counts().open < open);
  t.strictSame((await recordAt(store, wanted)).answer, given.answer);
  t.equal(await lines(), 1);
});

t.test('late, and done by its repetition: the late one changes nothing', async (t) => {
  const { proxy, shaky, seen, lines } = await setUp(t);
  const ghost = proxy.onceClientSends(change, 'hold');
  t.equal((await shaky.releaseIfUnchanged(seen, by, retentionMs)).kind, 'done');
  const { open } = proxy.counts();
  ghost.release();
  await until(() => proxy.counts().open < open);
  t.equal(await lines(), 1);
});

t.test('held up and still under way when it is repeated: cannot tell', async (t) => {
  const { shaky, seen, wanted, steady } = await setUp(t);
  const free = await harness.block(wanted);
  // The server gives up on the row after 2 s, and the person's patience ends before.
  const result = await shaky.releaseIfUnchanged(seen, by, retentionMs);
  t.equal(result.kind, 'unconfirmed');
  await free();
  t.ok(['done', 'refused'].includes((await steady.releaseIfUnchanged(seen, by, retentionMs)).kind));
  t.equal((await steady.history(wanted)).audit.length, 1);
});
