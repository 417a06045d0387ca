import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import t from 'tap';
import { run } from '../../src/cli/run.ts';
import { createMemos } from '../../src/core/memos.ts';
import { hashOf, type RecordId } from '../../src/core/record.ts';
import { decodeStored } from '../../src/core/response.ts';
import { scopeOf } from '../../src/core/scope.ts';
import { migrateUp } from '../../src/store/postgres/migrate.ts';
import { testDatabase } from '../helpers/postgres.ts';
import { serverMessage, tcpProxy } from '../helpers/tcp-proxy.ts';
import { completed, doubtful } from '../store/operator-harness.ts';
import { type PostgresHarness, postgresHarness } from '../store/postgres-harness.ts';
import { recordAt, reservation, reserved } from '../store/samples.ts';
import { inProcess } from './in-process.ts';

let harness: PostgresHarness;
t.before(async () => {
  harness = await postgresHarness(t);
});
t.beforeEach(async () => {
  await harness.clear();
  await harness.query('DELETE FROM oncegate.audit');
});

const keys = (...args: string[]) => inProcess(['keys', ...args], { DATABASE_URL: harness.url });
const idOf = (record: RecordId) => hashOf(record).slice(0, 16);
const auditLines = () => harness.query('SELECT actor, action, reason FROM oncegate.audit ORDER BY at');
const because = ['--reason', 'asked the bank', '--yes'];

t.test('misuse: exit 2, before anything is asked', async (t) => {
  const id = '3f2a9c0d11e4b7a6';
  const rows: [args: string[], err: RegExp][] = [
    [[], /keys needs one of list, show, resolve, purge/],
    [['shwo'], /unknown: keys shwo; did you mean show\?/],
    [['list', id], /one word too many/],
    [['list', '--reason', 'x'], /--reason goes with resolve and purge, not with list/],
    [['list', '--state', 'unkown'], /--state unkown: did you mean unknown\?/],
    [['list', '--older-than', '10'], /--older-than 10: has no unit; write 10s/],
    [['list', '--limit', '0'], /--limit 0: write a whole number from 1 to 10000/],
    [['show'], /say which: an ID .* or --key KEY/],
    [['show', 'order-1'], /an ID has 4 to 64 letters.* --key KEY/],
    [['show', id, '--path', '/a'], /--path goes with --key, not with an ID/],
    [['show', '--key', 'k', '--tenant', 'acme'], /--tenant: this config knows no tenants/],
    [['resolve', id, ...because], /say one: --completed .* or --released/],
    [['resolve', id, '--completed', '--released', ...because], /say one/],
    [['resolve', id, '--completed', ...because], /--completed needs the status/],
    [['resolve', id, '--completed', '--status', '201', ...because], /say --retention 7d/],
    [['resolve', id, '--completed', '--status', '99', ...because], /from 200 to 599/],
    [['resolve', id, '--completed', '--status', '204', '--body', 'x', ...because], /204 has no body/],
    [
      ['resolve', id, '--completed', '--status', '200', '--header', 'Set-Cookie: a=b', ...because],
      /Set-Cookie is never/,
    ],
    [
      ['resolve', id, '--completed', '--status', '200', '--body', 'x', '--body-file', 'y', ...because],
      /not both/,
    ],
    [
      ['resolve', id, '--completed', '--status', '200', '--body-file', '/none', ...because],
      /--body-file \/none: ENOENT/,
    ],
    [['resolve', id, '--released', '--status', '200', ...because], /--status goes with --completed/],
    [['resolve', id, '--released', '--yes'], /say why: --reason/],
    [['resolve', id, '--released', '--yes', '--reason', ' '], /say why: --reason/],
    [['resolve', id, '--released', '--reason', 'x'], /the input is no terminal; add --yes/],
    [['purge', id.slice(0, 8), ...because], /an ID has 16 to 64 letters/],
    [['purge', '--key', 'k', ...because], /with --key, give --path PATH too/],
  ];
  for (const [args, expected] of rows) {
    const { code, out, err } = await inProcess(['keys', ...args], {
      DATABASE_URL: 'postgres://127.0.0.1:1/none',
    });
    t.equal(code, 2, args.join(' '));
    t.equal(out, '');
    t.match(err, expected);
    t.match(err, 'See: oncegate help keys');
  }
});

t.test('a store that is missing, away or old', async (t) => {
  t.match(await inProcess(['keys', 'list']), { code: 2, err: /no store: set DATABASE_URL/ });
  t.equal((await inProcess(['keys', 'list', '--database-url', 'postgres://127.0.0.1:1/none'])).code, 4);
  const { url } = await testDatabase(t);
  t.match(await inProcess(['keys', 'list', '--database-url', url]), { code: 3, err: /migrate up/ });
  await migrateUp(url);
  t.match(await inProcess(['keys', 'list', '--database-url', url]), {
    code: 0,
    out: 'no such record is unknown or dead_letter\n',
  });
});

t.test('list: what waits, oldest first; for people and for scripts; never the answer', async (t) => {
  const [store] = harness.stores;
  const older = await doubtful(store, { tenant: 'acme', path: '/v1/\u001b[31mcharges' });
  const newer = await doubtful(store);
  await completed(store);
  const { code, out, err } = await keys('list');
  t.strictSame({ code, err }, { code: 0, err: '' });
  const [heading = '', ...lines] = out.trim().split('\n');
  t.match(heading, /^ID +STATE +AGE +METHOD +PATH +TENANT +STATUS +REQUEST ID +LAST ERROR$/);
  t.strictSame(
    lines.map((line) => line.split(' ')[0]),
    [idOf(older), idOf(newer)],
  );
  t.match(lines[0], / unknown .* POST +\/v1\/\\u\{1b\}\[31mcharges +acme +502 .* the upstream hung up$/);
  const listed = JSON.parse((await keys('list', '--json')).out) as Record<string, unknown>[];
  t.match(listed, [
    { id: idOf(older), key: older.key, state: 'unknown', attempt: older.attempt, status: 502, ageMs: Number },
    { id: idOf(newer) },
  ]);
  t.notOk(Object.keys(listed[0] ?? {}).some((name) => ['body', 'headers', 'fingerprint'].includes(name)));
  t.match(await keys('list', '--limit', '1'), {
    out: new RegExp(idOf(older)),
    err: /there may be more: only 1/,
  });
  t.match(await keys('list', '--tenant', 'acme', '--older-than', '1h'), { out: /^no such record/ });
  t.match(await keys('list', '--state', 'completed'), {
    out: /completed/,
    err: /looked at the 1,000 settled records that are kept longest/,
  });
});

t.test('show: everything but the answer, and what to type', async (t) => {
  const [store] = harness.stores;
  const wanted = await doubtful(store);
  const { code, out } = await keys('show', idOf(wanted).slice(0, 8));
  t.equal(code, 0);
  for (const text of [
    wanted.key,
    wanted.attempt,
    wanted.requestId,
    'epoch',
    'its lease is over',
    'status seen  502',
  ])
    t.match(out, text);
  const { epoch } = await recordAt(store, wanted);
  const resolve = `\n  oncegate keys resolve ${idOf(wanted)} --epoch ${epoch}`;
  t.match(out, `${resolve} --completed --status 201 --header`);
  t.match(out, `${resolve} --released --reason 'why'`);
  const settled = await completed(store);
  const plain = await keys('show', idOf(settled));
  t.match(plain.out, /answer +status 201, body of 13 bytes/);
  t.notMatch(plain.out, 'ch_1');
  t.match((await keys('show', idOf(settled), '--answer')).out, '{"id":"ch_1"}');
  const json = JSON.parse((await keys('show', idOf(settled), '--answer', '--json')).out) as object;
  t.match(json, {
    state: 'completed',
    audit: [],
    lateAnswers: [],
    answer: { status: 201, bodyBase64: Buffer.from('{"id":"ch_1"}').toString('base64') },
    next: [{ commands: [/^oncegate keys purge \w+ --epoch \d+ --reason 'why'$/] }],
  });
  const running = await reserved(store);
  t.match(
    (await keys('show', idOf(running))).out,
    /may have been sent[^]*becomes unknown at the latest at its deadline, .* in 60 s/,
  );
});

t.test('which one: by its id, by the beginning of it, by its key', async (t) => {
  const [store] = harness.stores;
  t.match(await keys('show', 'abcd'), { code: 1, err: /no record begins with abcd .* all 16 letters/ });
  t.match(await keys('show', 'abcdabcdabcdabcd'), { code: 1, err: /no such record/ });
  const place = { path: '/charges', method: 'POST' };
  const key = 'order-1';
  const posted = await completed(store, {
    scope: scopeOf(createMemos(), [null, 'POST', '/charges']),
    key,
    ...place,
  });
  t.match((await keys('show', '--key', key, '--path', '/charges')).out, idOf(posted));
  t.match((await keys('show', '--key', key)).out, idOf(posted), 'found in the whole table');
  t.match(await keys('show', '--key', key, '--path', '/refunds'), { code: 1, err: /no such record/ });
  const patched = await doubtful(store, {
    scope: scopeOf(createMemos(), [null, 'PATCH', '/charges']),
    key,
    path: '/charges',
    method: 'PATCH',
  });
  const both = await keys('show', '--key', key, '--path', '/charges');
  t.match(both, { code: 1, out: '', err: /that is 2 records; say which:/ });
  for (const one of [posted, patched]) t.match(both.err, idOf(one));
  t.match((await keys('show', '--key', key, '--path', '/charges', '--method', 'patch')).out, idOf(patched));
  t.match((await keys('show', '--key', key)).out, idOf(patched), 'what waits comes before what is settled');

  // Two whose ids begin alike.
  const byStart = new Map<string, string>();
  for (let n = 0; ; n += 1) {
    const id = { scope: scopeOf(createMemos(), [String(n)]), key: 'k' };
    const start = idOf(id).slice(0, 4);
    if (byStart.has(start)) {
      await doubtful(store, id);
      await doubtful(store, { scope: scopeOf(createMemos(), [byStart.get(start) as string]), key: 'k' });
      t.match(await keys('show', start), { code: 1, err: /that is 2 records; say which/ });
      const short = await keys('resolve', start, '--released', ...because);
      t.match(short, { code: 2, err: /an ID has 16 to 64 letters/ }, 'to change one it takes all of its id');
      break;
    }
    byStart.set(start, String(n));
  }
  t.strictSame(await auditLines(), []);

  await harness.query(`INSERT INTO oncegate.identity (settings) VALUES ('tenant=header:x-tenant')`);
  t.match(await keys('show', '--key', key, '--path', '/charges'), {
    code: 2,
    err: /not that of the sidecars[^]*--config/,
  });
  await harness.query('DELETE FROM oncegate.identity');
});

t.test('resolve as completed: the answer is stored as given', async (t) => {
  const [store] = harness.stores;
  const wanted = await doubtful(store);
  const dir = mkdtempSync(join(tmpdir(), 'oncegate-keys-'));
  t.teardown(() => rmSync(dir, { recursive: true }));
  const body = Buffer.from([0x7b, 0x0a, 0xff, 0x00, 0x7d]);
  writeFileSync(join(dir, 'answer.bin'), body);
  const headers = ['--header', 'Content-Type: application/octet-stream', '--header', 'Location: /charges/1'];
  const answer = ['--completed', '--status', '201', ...headers, '--body-file', join(dir, 'answer.bin')];
  const done = await keys(
    'resolve',
    idOf(wanted),
    ...answer,
    '--retention',
    '7d',
    '--actor',
    'ann',
    ...because,
  );
  t.match(done, { code: 0, err: '', out: /^done: \w+ is completed; retries get 201, until .*, in 7 d\n$/ });
  const record = await recordAt(store, wanted);
  t.match(record, { state: 'completed', answer: { status: 201, body } });
  t.strictSame(decodeStored(createMemos(), record.answer?.headers ?? Buffer.alloc(0)), [
    'Content-Type',
    'application/octet-stream',
    'Location',
    '/charges/1',
  ]);
  t.strictSame(await auditLines(), [{ actor: 'ann', action: 'complete', reason: 'asked the bank' }]);
  const again = await keys('resolve', idOf(wanted), '--released', ...because);
  t.match(again, { code: 1, out: '', err: /not done: \w+ is completed\.[^]*keys purge/ });
  t.match(
    (await keys('show', idOf(wanted))).out,
    /audit +\S+ ann: complete, unknown → completed: asked the bank/,
  );
});

t.test('resolve as released; for scripts; by user and host unless told otherwise', async (t) => {
  const [store] = harness.stores;
  const wanted = await doubtful(store);
  const { code, out } = await keys('resolve', idOf(wanted), '--released', ...because, '--json');
  t.equal(code, 0);
  t.match(JSON.parse(out), { result: 'done', id: idOf(wanted), now: { state: 'failed_retryable' } });
  t.equal((await recordAt(store, wanted)).state, 'failed_retryable');
  t.match(await auditLines(), [{ actor: /^.+@.+$/, action: 'release' }]);
});

t.test('resolve by the beginning of an ID: where a person is asked, or the epoch says which', async (t) => {
  const [store] = harness.stores;
  const wanted = await doubtful(store);
  const start = idOf(wanted).slice(0, 6);
  t.match(await keys('resolve', start, '--released', ...because), {
    code: 2,
    err: /an ID has 16 to 64 letters.*only where a person is asked, or with --epoch/,
  });
  const shown = JSON.parse((await keys('show', start, '--json')).out) as { epoch: string };
  t.match(await keys('resolve', start, '--released', '--epoch', shown.epoch, ...because), {
    code: 0,
    out: /is failed_retryable/,
  });
});

t.test('what may not be: in progress, unknown, free, too large', async (t) => {
  const [store] = harness.stores;
  const running = await reserved(store);
  t.match(await keys('resolve', idOf(running), '--released', ...because), {
    code: 1,
    err: /is in_progress\. [^]*becomes unknown at the latest at its deadline/,
  });
  t.match(await keys('purge', idOf(running), ...because), { code: 1, err: /is in_progress/ });
  const unknown = await doubtful(store);
  t.match(await keys('purge', idOf(unknown), ...because), { code: 1, err: /is unknown\. Resolve it first/ });
  const large = ['--completed', '--status', '200', '--retention', '1d', '--body', 'x'.repeat(2_000)];
  const limited = await inProcess(['keys', 'resolve', idOf(unknown), ...large, ...because], {
    DATABASE_URL: harness.url,
    ONCEGATE_DEFAULTS_MAX_STORED_BODY: '1kb',
  });
  t.match(limited, { code: 2, err: /larger than maxStoredBody of its route, 1024 bytes/ });
  await keys('resolve', idOf(unknown), '--released', ...because);
  t.match(await keys('purge', idOf(unknown), ...because), { code: 1, err: /keeps no answer/ });
  t.equal((await auditLines()).length, 1);
});

t.test('purge: the answer is gone, and it says from when retries run', async (t) => {
  const [store] = harness.stores;
  const wanted = await completed(store);
  const done = await keys('purge', idOf(wanted), ...because);
  t.match(done, {
    code: 0,
    out: /^done: the answer of \w+ is erased; retries get 409 until .* in 60 s, then run\.\nA replica .* for up to 30 s more\.\n$/,
  });
  t.match(await recordAt(store, wanted), { state: 'failed_retryable', blocked: true, answer: null });
  t.match((await keys('show', idOf(wanted))).out, /It was purged: retries get 409 until/);
});

t.test('the answer of the store is lost: told what is so', async (t) => {
  const [store] = harness.stores;
  const wanted = await doubtful(store);
  const { hostname, port } = new URL(harness.url);
  const proxy = await tcpProxy(t, { host: hostname, port: Number(port) });
  const shaky = { DATABASE_URL: proxy.through(harness.url) };
  const lost = proxy.onceServerSends(serverMessage('C', 'INSERT'), 'cut-before');
  void lost.fired.then(() => proxy.refuse(true));
  const args = ['keys', 'resolve', idOf(wanted), '--released', ...because];
  const unsure = await inProcess(args, shaky);
  t.match(unsure, {
    code: 1,
    out: '',
    err: /could not find out whether it was done: .* run oncegate keys show \w+\n$/,
  });
  t.match(await keys('show', idOf(wanted)), { code: 0, out: /release, unknown → failed_retryable/ });

  proxy.refuse(false);
  const other = await doubtful(store);
  proxy.onceServerSends(serverMessage('C', 'INSERT'), 'cut-before');
  const sure = await inProcess(['keys', 'resolve', idOf(other), '--released', ...because], shaky);
  t.match(sure, { code: 0, out: /^done:/ }, 'it can be asked again: done, and known to be');
  t.equal((await auditLines()).length, 2);
});

t.test('a person at a terminal is asked once', async (t) => {
  const [store] = harness.stores;
  const wanted = await doubtful(store);
  const answered = async (typed: string) => {
    let [out, err] = ['', ''];
    const stdin = Object.assign(new PassThrough(), { isTTY: true });
    stdin.end(typed);
    const io = {
      stdin,
      stdout: { write: (text: string) => (out += text) },
      stderr: { write: (text: string) => (err += text) },
      env: { DATABASE_URL: harness.url },
    };
    const code = await run(['keys', 'resolve', idOf(wanted), '--released', '--reason', 'asked'], io);
    return { code, out, err };
  };
  for (const typed of ['', 'yes\n', '\n'])
    t.match(await answered(typed), {
      code: 1,
      out: '',
      err: /Type the first 8 letters of the id[^]*not done/,
    });
  t.equal((await recordAt(store, wanted)).state, 'unknown');
  t.match(await answered(`${idOf(wanted).slice(0, 8)}\n`), {
    code: 0,
    out: /^done:/,
    err: /the next retry with this key/,
  });
});

/** Runs a command in a pseudo-terminal; part of util-linux. */
const terminal = 'script';
const hasScript = spawnSync(terminal, ['--version']).status === 0;

t.test('a real terminal', { skip: hasScript ? false : `${terminal} is not installed` }, async (t) => {
  const [store] = harness.stores;
  const wanted = await doubtful(store);
  const line = `${process.execPath} --import=tsx src/cli/oncegate.ts keys resolve ${idOf(wanted)} --released --reason asked`;
  const child = spawn(terminal, ['-qec', line, '/dev/null'], {
    env: { PATH: process.env['PATH'], DATABASE_URL: harness.url },
  });
  const exited = once(child, 'exit');
  let said = '';
  child.stdout.on('data', (chunk) => {
    said += String(chunk);
    if (said.endsWith('to go on: ')) child.stdin.write(`${idOf(wanted).slice(0, 8)}\n`);
  });
  t.same(await exited, [0, null], said);
  t.match(said, /done: \w+ is failed_retryable/);
  t.equal((await recordAt(store, wanted)).state, 'failed_retryable');
});

t.test('what ran again since it was looked at is not touched', async (t) => {
  const [store] = harness.stores;
  const wanted = await doubtful(store);
  const seen = await recordAt(store, wanted);
  const released = await keys('resolve', idOf(wanted), '--epoch', seen.epoch, '--released', ...because);
  t.equal(released.code, 0, released.err);
  const next = reservation({ scope: wanted.scope, key: wanted.key });
  await store.takeOverIfUnchanged(await recordAt(store, wanted), next);
  const { scope, key, attempt } = next;
  await store.markUnknownIfHeld({ scope, key, attempt, status: null, error: 'cut' });
  const late = await keys('resolve', idOf(wanted), '--epoch', seen.epoch, '--released', ...because);
  t.match(late, { code: 1, out: '', err: /not done: --epoch \d+ is not what \w+ is now[^]*unknown/ });
  t.equal((await recordAt(store, wanted)).state, 'unknown');
});

t.test('to change a record by its key it takes the path too: the same key may stand elsewhere', async (t) => {
  const [store] = harness.stores;
  const wanted = await doubtful(store);
  const answer = await keys('resolve', '--key', wanted.key, '--released', ...because);
  t.match(answer, { code: 2, err: /with --key, give --path PATH too/ });
  t.equal((await recordAt(store, wanted)).state, 'unknown');
});

t.test('an answer is kept for a second at least', async (t) => {
  const [store] = harness.stores;
  const wanted = await doubtful(store);
  const flags = ['--completed', '--status', '201', '--retention', '0s', ...because];
  t.match(await keys('resolve', idOf(wanted), ...flags), { code: 2, err: /--retention is too short/ });
});
