/** What a guarded request can get, and how each SDK is brought to get it. */
import { randomUUID } from 'node:crypto';

// By address: the types of what is TypeScript would be asked of these scripts too.
const load = (path) => import(new URL(`../${path}`, import.meta.url).href);
const { problemReply } = await load('src/core/problem.ts');
const { ask } = await load('test/helpers/client.ts');
const { testDatabase } = await load('test/helpers/postgres.ts');
const { sidecarProcess } = await load('test/helpers/sidecar.ts');
const { tcpProxy } = await load('test/helpers/tcp-proxy.ts');
const { testUpstream } = await load('test/helpers/upstream.ts');

const config = (dialect) => `
tenant: { from: { header: Stripe-Account } }
upstream: { timeout: 2s }
defaults: { dialect: ${dialect}, inFlight: { wait: 0s }, maxRequestBody: 2kb, maxStoredBody: 4kb }`;

/** Three sidecars: one that works, one whose upstream is not there, one whose store is not. */
export async function prepare(t, dialect) {
  const held = [];
  // A key says what the upstream is to do: SDKs send no headers of their own choice.
  const upstream = await testUpstream(t, ({ key }, res) => {
    const id = `ch_${upstream.executions.length}`;
    const answer = (more) =>
      res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ id, ...more }));
    if (key?.startsWith('cut-')) res.socket.resetAndDestroy();
    else if (key?.startsWith('hold-')) held.push(answer);
    else if (key?.startsWith('large-')) answer({ text: 'x'.repeat(10_000) });
    else answer({});
  });
  const gone = await testUpstream(t);
  gone.stop();
  const text = config(dialect);
  const works = await sidecarProcess(t, { upstream: upstream.url, config: text });
  const nowhere = await sidecarProcess(t, { upstream: gone.url, config: text });
  const database = new URL((await testDatabase(t)).url);
  const line = await tcpProxy(t, { host: database.hostname, port: Number(database.port) });
  const databaseUrl = line.through(database.href);
  const storeless = await sidecarProcess(t, { upstream: upstream.url, config: text, databaseUrl });
  line.refuse(true);
  line.cutAll();
  const letGo = () => {
    for (const answer of held.splice(0)) answer({});
  };
  return {
    dialect,
    upstream,
    letGo,
    url: works.dataUrl,
    nowhere: nowhere.dataUrl,
    storeless: storeless.dataUrl,
  };
}

const ours =
  /^(host|connection|content-length|idempotency-key|x-forwarded-|oncegate-|accept-encoding|x-request-id)/;

/** The SDK's own request, byte for byte, with another key and by us: so the SDK's call is its retry. */
async function sendAs(bench, client, key) {
  await client({ url: bench.url, key: `model-${randomUUID()}` });
  const { url, method, headers, body } = bench.upstream.executions.at(-1);
  const kept = Object.fromEntries(Object.entries(headers).filter(([name]) => !ours.test(name)));
  return ask(`${bench.url}${url}`, { method, key, headers: kept, body });
}

const problem = (name, call) => ({
  name,
  async run(bench, client, sdk) {
    const { threw, said, body } = await call(bench, client);
    if (!threw) return 'taken for a success';
    const { detail } = JSON.parse(problemReply(name, { dialect: 'ietf', requestId: 'r' }).body);
    // Why a key is invalid is said in other words.
    const words = name === 'key_invalid' ? 'The idempotency key is too long' : detail;
    const shown = sdk.showsBody ? `${body}` : said;
    return shown.includes(words) ? null : `shows ${JSON.stringify(shown).slice(0, 100)}`;
  },
});

/** `run` gives what went wrong, or null. */
export const problems = [
  {
    name: 'success and retry',
    async run({ url, upstream }, client) {
      const key = randomUUID();
      for (const _ of [1, 2]) {
        const { threw, said } = await client({ url, key });
        if (threw) return said;
      }
      const ran = upstream.countOf(key);
      return ran === 1 ? null : `ran ${ran} times`;
    },
  },
  problem('key_missing', ({ url }, client) => client({ url })),
  problem('key_invalid', ({ url }, client) => client({ url, key: 'k'.repeat(256) })),
  problem('tenant_missing', ({ url }, client) => client({ url, key: randomUUID(), tenant: null })),
  problem('body_too_large', ({ url }, client) => client({ url, key: randomUUID(), note: 'x'.repeat(3_000) })),
  problem('store_unavailable', ({ storeless }, client) => client({ url: storeless, key: randomUUID() })),
  problem('key_reused', async ({ url }, client) => {
    const key = randomUUID();
    await client({ url, key });
    return client({ url, key, amount: 2 });
  }),
  problem('response_not_retained', async (bench, client) => {
    const key = `large-${randomUUID()}`;
    await sendAs(bench, client, key);
    return client({ url: bench.url, key });
  }),
  problem('in_progress', async (bench, client) => {
    const key = `hold-${randomUUID()}`;
    const first = sendAs(bench, client, key);
    await bench.upstream.received(bench.upstream.executions.length + 2);
    const end = await client({ url: bench.url, key });
    bench.letGo();
    await first;
    return end;
  }),
  problem('outcome_unknown', async (bench, client) => {
    const key = `cut-${randomUUID()}`;
    await sendAs(bench, client, key);
    return client({ url: bench.url, key });
  }),
  problem('upstream_unreachable', ({ nowhere }, client) => client({ url: nowhere, key: randomUUID() })),
  problem('upstream_failed', ({ url }, client) => client({ url, key: `cut-${randomUUID()}` })),
  problem('upstream_timeout', async ({ url, letGo }, client) => {
    const end = await client({ url, key: `hold-${randomUUID()}` });
    letGo();
    return end;
  }),
];
