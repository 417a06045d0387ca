/** What the SDKs are tried on: an upstream that does as the key says, and sidecars in each of the states that make a problem. */
import { once } from 'node:events';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { Readable } from 'node:stream';

// By address: the types of what is TypeScript would be asked of these scripts too.
const load = (path) => import(new URL(`../${path}`, import.meta.url).href);
const { heldLimitOf, memoryShare } = await load('src/memory.ts');
const { Budget } = await load('src/proxy/budget.ts');
const { testDatabase } = await load('test/helpers/postgres.ts');
const { sidecarProcess } = await load('test/helpers/sidecar.ts');
const { tcpProxy } = await load('test/helpers/tcp-proxy.ts');
const { until } = await load('test/helpers/until.ts');
const { testUpstream } = await load('test/helpers/upstream.ts');

/** Long enough for a call beside one that is held, and its retry. */
const timeout = 'upstream: { timeout: 4s }';
const config = (dialect) => `
tenant: { from: { header: Stripe-Account } }
${timeout}
defaults: { dialect: ${dialect}, inFlight: { wait: 0s }, maxRequestBody: 2kb, maxStoredBody: 4kb }
routes: [{ path: /off/*, mode: 'off' }]`;

export async function prepare(t, dialect) {
  const upstream = await steeredUpstream(t);
  const text = config(dialect);
  const serve = (url, more) => sidecarProcess(t, { upstream: url, config: text, ...more });
  const gone = await testUpstream(t);
  gone.stop();
  const [works, nowhere, storeless, fading, full] = await Promise.all([
    serve(upstream.url),
    serve(gone.url),
    withLine(t, serve, upstream.url),
    withLine(t, serve, upstream.url),
    filled(t, text),
  ]);
  storeless.away();
  const lossy = await tcpProxy(t, { host: '127.0.0.1', port: Number(new URL(works.dataUrl).port) });
  return {
    upstream,
    url: works.dataUrl,
    lossy,
    lossyUrl: `http://127.0.0.1:${lossy.port}`,
    nowhere: nowhere.dataUrl,
    storeless: storeless.dataUrl,
    fading,
    full: full.dataUrl,
    /** How often an operation ran: its key is in the body too, for calls that send none, or another one. */
    ran: (key) => upstream.executions.filter((one) => one.key === key || one.body.includes(key)).length,
  };
}

/** SDKs send no headers of their own choice, but any key. */
async function steeredUpstream(t) {
  const held = new Map();
  const upstream = await testUpstream(t, ({ key }, res) => {
    const answer = (more) =>
      res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ id: key, ...more }));
    if (key?.startsWith('cut-')) res.socket.resetAndDestroy();
    else if (key?.startsWith('hold-')) held.set(key, answer);
    else if (key?.startsWith('large-')) answer({ text: 'x'.repeat(10_000) });
    else answer({});
  });
  return Object.assign(upstream, { letGo: (key) => held.get(key)?.({}) });
}

/** Its store can go away and come back. */
async function withLine(t, serve, url) {
  const database = new URL((await testDatabase(t)).url);
  const line = await tcpProxy(t, { host: database.hostname, port: Number(database.port) });
  const { dataUrl } = await serve(url, { databaseUrl: line.through(database.href) });
  const away = () => {
    line.refuse(true);
    line.cutAll();
  };
  return { dataUrl, away, back: () => line.refuse(false) };
}

/** Bytes: the most that `maxRequestBody` may be. */
const largestBody = 100 * 1_048_576;

/**
 * Has no room left: bodies fill what one address may have, to the last byte, while their upstream takes nothing of them. Once it has
 * them all it begins to answer, and the first byte of that is one too many.
 */
async function filled(t, text) {
  const most = new Budget(heldLimitOf(memoryShare(1))).largestBytes;
  const bodies = [];
  for (let left = most; left > 0; left -= largestBody) bodies.push(Math.min(left, largestBody));
  const sockets = [];
  const silent = createServer((socket) => {
    sockets.push(socket.on('error', () => {}));
    if (sockets.length < bodies.length) return;
    for (const one of sockets) one.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{');
  }).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  t.teardown(() => {
    silent.close();
    for (const socket of sockets) socket.destroy();
  });
  const more = text.replace(timeout, 'upstream: { timeout: 1h }').replace('2kb', '100mb');
  const url = `http://127.0.0.1:${silent.address().port}`;
  const full = await sidecarProcess(t, { upstream: url, config: more });
  for (const bytes of bodies) pour(t, full.dataUrl, bytes);
  await until('no room is left', async () => {
    const metrics = await (await fetch(`${full.opsUrl}/metrics`)).text();
    return Number(/^oncegate_held_bytes (\d+)/m.exec(metrics)?.[1]) > most;
  });
  return full;
}

function pour(t, url, bytes) {
  const headers = { 'Idempotency-Key': `fill-${bytes}`, 'Stripe-Account': 'acct_1', 'Content-Length': bytes };
  const req = request(url, { method: 'POST', headers });
  req.on('error', () => {});
  t.teardown(() => req.destroy());
  const piece = Buffer.alloc(1_048_576);
  const pieces = function* () {
    for (let left = bytes; left > 0; left -= piece.length) yield piece.subarray(0, left);
  };
  Readable.from(pieces()).pipe(req);
}
