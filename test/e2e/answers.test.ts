import { randomUUID } from 'node:crypto';
import t, { type Test } from 'tap';
import { ask, send } from '../helpers/client.ts';
import { query } from '../helpers/postgres.ts';
import { countRecords, expire } from '../helpers/records.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { testUpstream } from '../helpers/upstream.ts';
import { closedPort, exchange } from '../proxy/pass-through-server.ts';
import { type Dialect, Guarded } from './guarded.ts';

/** Every row of "What a guarded request gets", over a real socket, in both dialects. */

const bodyLimit = 1_000;

const config = (dialect: Dialect, nowhere: number) => `
tenant: { from: { header: X-Tenant } }
defaults: { dialect: ${dialect}, inFlight: { wait: 0s }, maxRequestBody: ${bodyLimit}b, maxStoredBody: 100kb }
routes:
  - { path: /accepted, inFlight: { answer: 202 } }
  - { path: /busy, inFlight: { answer: 503 } }
  - { path: /optional, requireKey: false }
  - { path: /put, methods: [PUT, DELETE] }
  - { path: /nowhere, upstream: { url: 'http://127.0.0.1:${nowhere}' } }
  - { path: /slow, upstream: { timeout: 300ms } }
  - { path: /made, replayStatus: 200 }`;

for (const dialect of ['ietf', 'stripe'] as const) {
  t.test(dialect, async (t) => {
    const upstream = await testUpstream(t);
    const running = await sidecar(t, { upstream: upstream.url, config: config(dialect, await closedPort()) });
    const guarded = new Guarded(dialect, upstream, running);
    for (const [name, test] of Object.entries(rows)) await t.test(name, (t) => test(t, guarded));
  });
}

const rows: Readonly<Record<string, (t: Test, guarded: Guarded) => Promise<void>>> = {
  async 'no key'(t, guarded) {
    const url = `${guarded.sidecar.dataUrl}/a`;
    const ran = guarded.upstream.executions.length;
    for (const method of ['POST', 'PATCH']) {
      guarded.isProblem(t, await ask(url, { method, headers: { 'X-Tenant': 'acme' } }), 'key_missing');
    }
    t.equal(guarded.upstream.executions.length, ran, 'nothing was forwarded');
  },

  async 'no key where none is needed'(t, guarded) {
    const url = `${guarded.sidecar.dataUrl}/optional`;
    const records = await countRecords(guarded.sidecar.databaseUrl);
    for (const body of ['{"n":1}', '{"n":1}']) {
      const answer = await ask(url, { body });
      t.equal(answer.status, 201);
      t.equal(answer.headers['idempotency-status'], undefined, 'not guarded');
    }
    t.equal(await countRecords(guarded.sidecar.databaseUrl), records, 'nothing was stored');
    const key = randomUUID();
    await guarded.send(key, { path: '/optional' });
    const retry = await guarded.send(key, { path: '/optional' });
    t.equal(retry.headers['idempotency-status'], 'replayed', 'with a key it is guarded');
    guarded.isProblem(t, await guarded.send('', { path: '/optional' }), 'key_invalid');
  },

  async 'methods that need no key'(t, guarded) {
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const key = randomUUID();
      for (const _ of [1, 2]) {
        const answer = await guarded.send(key, { method });
        t.equal(answer.status, 201);
        t.equal(answer.headers['idempotency-status'], undefined);
      }
      t.equal(guarded.upstream.countOf(key), 2, `${method} passes through, each time`);
    }
  },

  async 'other methods where a route names them'(t, guarded) {
    const path = '/put';
    const url = `${guarded.sidecar.dataUrl}${path}`;
    for (const method of ['PUT', 'DELETE']) {
      const key = randomUUID();
      const headers = { 'X-Tenant': 'acme' };
      guarded.isProblem(t, await ask(url, { method, headers }), 'key_missing');
      await guarded.send(key, { path, method });
      t.equal((await guarded.send(key, { path, method })).headers['idempotency-status'], 'replayed');
      t.equal(guarded.upstream.countOf(key), 1, method);
    }
    const key = randomUUID();
    for (const _ of [1, 2]) await guarded.send(key, { path });
    t.equal(guarded.upstream.countOf(key), 2, 'and then POST is not one of them');
  },

  async 'bad keys'(t, guarded) {
    const ran = guarded.upstream.executions.length;
    const headers: Record<string, string | string[]>[] = [
      { 'Idempotency-Key': ['a', 'a'] },
      { 'Idempotency-Key': ['a', 'b'] },
      { 'Idempotency-Key': 'a', 'X-Idempotency-Key': 'b' },
      { 'Idempotency-Key': 'a', Connection: 'close, idempotency-key' },
      { Connection: 'Idempotency-Key' },
      { 'Idempotency-Key': 'a'.repeat(256) },
      { 'Idempotency-Key': `"${'a'.repeat(256)}"` },
      { 'Idempotency-Key': '' },
      { 'Idempotency-Key': '""' },
      { 'Idempotency-Key': 'two words' },
      { 'Idempotency-Key': 'a\tb' },
      { 'Idempotency-Key': 'caf\u00e9' },
      { 'Idempotency-Key': '"open' },
      { 'Idempotency-Key': '"a"; p=1' },
      { 'Idempotency-Key': '"a", "b"' },
    ];
    for (const one of headers) {
      const answer = await ask(`${guarded.sidecar.dataUrl}/a`, { headers: { 'X-Tenant': 'acme', ...one } });
      t.comment(JSON.stringify(one).slice(0, 80));
      guarded.isProblem(t, answer, 'key_invalid');
    }
    t.equal(guarded.upstream.executions.length, ran, 'nothing was forwarded');
  },

  async 'control characters in a key'(t, guarded) {
    const ran = guarded.upstream.executions.length;
    const port = Number(new URL(guarded.sidecar.dataUrl).port);
    for (const byte of ['\x00', '\x01', '\x0b', '\x1f', '\x7f', '\r']) {
      const head = `POST /a HTTP/1.1\r\nHost: a\r\nX-Tenant: acme\r\nConnection: close\r\nIdempotency-Key: a${byte}b\r\n`;
      const answer = await exchange(t, port, `${head}Content-Length: 0\r\n\r\n`);
      t.match(answer, /^HTTP\/1\.1 400 /, JSON.stringify(byte));
    }
    t.equal(guarded.upstream.executions.length, ran, 'nothing was forwarded');
  },

  async 'a key behind 970 small headers is seen'(t, guarded) {
    const port = Number(new URL(guarded.sidecar.dataUrl).port);
    const key = randomUUID();
    const ran = guarded.upstream.executions.length;
    const head = `POST /a HTTP/1.1\r\nHost: a\r\nX-Tenant: acme\r\nConnection: close\r\nContent-Length: 2\r\n`;
    const request = `${head}${'a:\r\n'.repeat(970)}Idempotency-Key: ${key}\r\n\r\n{}`;
    t.match(await exchange(t, port, request), /Idempotency-Status: executed/);
    t.match(await exchange(t, port, request), /Idempotency-Status: replayed/);
    t.equal(guarded.upstream.executions.length, ran + 1);
  },

  async 'keys of every legal form'(t, guarded) {
    const id = randomUUID();
    for (const key of ['a', `${id}+/=`, '{"json":1}', 'a,b', 'x'.repeat(255)]) {
      t.equal((await guarded.send(key)).headers['idempotency-status'], 'executed');
      t.equal((await guarded.send(key)).headers['idempotency-status'], 'replayed');
    }
    t.equal(
      (await guarded.send(`"${id} with \\"quotes\\" and \\\\"`)).headers['idempotency-status'],
      'executed',
    );
    await guarded.send(id);
    for (const [name, value] of [
      ['Idempotency-Key', `"${id}"`],
      ['X-Idempotency-Key', id],
      ['X-Idempotency-Key', `"${id}"`],
    ] as const) {
      const answer = await ask(`${guarded.sidecar.dataUrl}/a`, {
        headers: { 'X-Tenant': 'acme', [name]: value },
        body: '{"amount":1}',
      });
      t.equal(answer.headers['idempotency-status'], 'replayed', `${name}: one key, whatever its form`);
    }
    t.equal(guarded.upstream.countOf(id), 1);
  },

  async 'no tenant'(t, guarded) {
    const ran = guarded.upstream.executions.length;
    for (const tenant of [{ 'X-Tenant': '' }, { 'X-Tenant': ['a', 'b'] }, { 'X-Tenant': ['a', 'a'] }]) {
      guarded.isProblem(t, await guarded.send(randomUUID(), { headers: tenant }), 'tenant_missing');
    }
    guarded.isProblem(t, await send(`${guarded.sidecar.dataUrl}/a`, 'k'), 'tenant_missing');
    const hidden = { Connection: 'close, X-Tenant' };
    guarded.isProblem(t, await guarded.send(randomUUID(), { headers: hidden }), 'tenant_missing');
    t.equal(guarded.upstream.executions.length, ran);
  },

  async 'a body over the limit'(t, guarded) {
    const key = randomUUID();
    const ran = guarded.upstream.executions.length;
    const body = 'x'.repeat(bodyLimit + 1);
    const sized = await guarded.send(key, { body });
    guarded.isProblem(t, sized, 'body_too_large');
    t.equal(sized.headers['connection'], 'close');
    const port = Number(new URL(guarded.sidecar.dataUrl).port);
    const head = `POST /a HTTP/1.1\r\nHost: a\r\nX-Tenant: acme\r\nIdempotency-Key: ${key}\r\n`;
    const chunk = `${(bodyLimit / 2).toString(16)}\r\n${'x'.repeat(bodyLimit / 2)}\r\n`;
    const chunked = await exchange(
      t,
      port,
      `${head}Transfer-Encoding: chunked\r\n\r\n${chunk.repeat(3)}0\r\n\r\n`,
    );
    t.match(chunked, /^HTTP\/1\.1 413 /);
    t.match(chunked, /body_too_large/);
    t.equal(await guarded.record(key), undefined, 'no reservation');
    t.equal(guarded.upstream.executions.length, ran);
    const just = await guarded.send(key, { body: body.slice(1) });
    t.equal(just.status, 201, 'the limit itself is allowed, and the key was not used up');
  },

  async replay(t, guarded) {
    const key = randomUUID();
    const first = await guarded.send(key, { steer: { headers: { Location: '/1' } } });
    const retry = await guarded.send(key);
    t.same([first.status, retry.status], [201, 201]);
    t.same(retry.body, first.body);
    t.equal(retry.headers['location'], '/1');
    t.same(
      [first, retry].map(({ headers }) => [headers['idempotency-status'], headers['idempotent-replayed']]),
      [
        ['executed', undefined],
        ['replayed', 'true'],
      ],
    );
    for (const { headers } of [first, retry]) {
      const expires = headers['idempotency-expires'] as string;
      t.match(expires, /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/, 'IMF-fixdate');
      t.ok(Date.parse(expires) > Date.now());
      t.match(headers['x-request-id'], /^[0-9a-f-]{36}$/);
    }
    t.not(first.headers['x-request-id'], retry.headers['x-request-id']);
    const named = await guarded.send(key, { headers: { 'X-Request-Id': 'mine-1' } });
    t.equal(named.headers['x-request-id'], 'mine-1', "the client's own id is kept");
    t.equal(guarded.upstream.countOf(key), 1);
  },

  async 'replayStatus: 200'(t, guarded) {
    for (const [status, replayed] of [
      [201, 200],
      [200, 200],
      [202, 202],
      [404, 404],
    ]) {
      const key = randomUUID();
      const first = await guarded.send(key, { path: '/made', steer: { status: status as number } });
      const retry = await guarded.send(key, { path: '/made' });
      t.same([first.status, retry.status], [status, replayed]);
      t.equal(retry.headers['idempotency-status'], 'replayed');
    }
  },

  async 'another request with the same key, in every state'(t, guarded) {
    const other = { body: '{"amount":2}' };
    const secret = 'stored-secret';
    const completed = randomUUID();
    await guarded.send(completed, { steer: { body: secret, headers: { 'X-Secret': secret } } });
    const unknown = randomUUID();
    await guarded.send(unknown, { steer: { cut: true } });
    const released = randomUUID();
    await guarded.send(released, { steer: { status: 429, body: secret } });
    const running = randomUUID();
    const { answer } = await guarded.sendAndHold(running);
    for (const key of [completed, unknown, released, running]) {
      const refused = await guarded.send(key, other);
      guarded.isProblem(t, refused, 'key_reused');
      t.notMatch(JSON.stringify([refused.rawHeaders, refused.body.toString()]), secret);
      t.notMatch(refused.body.toString(), key, 'not even the key is shown');
      t.equal(guarded.upstream.countOf(key), 1);
    }
    guarded.upstream.letGo();
    t.equal((await answer).status, 201, 'and what ran was not disturbed');
  },

  async 'a caller without credentials'(t, guarded) {
    for (const [name, value] of [
      ['Authorization', 'Bearer x'],
      ['Cookie', 'session=1'],
      ['X-Api-Key', 'x'],
    ] as const) {
      const key = randomUUID();
      const headers = { [name]: value };
      t.equal((await guarded.send(key, { headers })).status, 201);
      const refused = await guarded.send(key);
      guarded.isProblem(t, refused, 'caller_differs');
      t.notMatch(refused.body.toString(), 'ran');
      const none = [{ [name]: '' }, { ...headers, Connection: `close, ${name}` }];
      for (const headers of none)
        guarded.isProblem(t, await guarded.send(key, { headers }), 'caller_differs');
      t.equal((await guarded.send(key, { headers })).headers['idempotency-status'], 'replayed');
      const anonymous = randomUUID();
      await guarded.send(anonymous);
      const more = await guarded.send(anonymous, { headers });
      t.equal(more.headers['idempotency-status'], 'replayed', 'the other way round nothing leaks');
    }
  },

  async 'an answer too large to keep'(t, guarded) {
    const key = randomUUID();
    const first = await guarded.send(key, { steer: { status: 200, bytes: 300_000 } });
    t.same([first.status, first.body.length], [200, 300_000], 'this client gets it');
    t.equal(first.headers['idempotency-status'], 'executed');
    guarded.isProblem(t, await guarded.send(key), 'response_not_retained');
    t.match(await guarded.record(key), { state: 'completed', status: 200, has_body: false });
    t.equal(guarded.upstream.countOf(key), 1);
  },

  async 'a duplicate in flight'(t, guarded) {
    for (const [path, status] of [
      ['/a', 409],
      ['/accepted', 202],
      ['/busy', 503],
    ] as const) {
      const key = randomUUID();
      const { answer } = await guarded.sendAndHold(key, { path });
      guarded.isProblem(t, await guarded.send(key, { path }), 'in_progress', status);
      t.equal((await guarded.record(key))?.state, 'in_progress');
      guarded.upstream.letGo();
      t.equal((await answer).status, 201);
      t.equal(guarded.upstream.countOf(key), 1);
    }
  },

  async 'the connection broke: failed, then unknown, and never again'(t, guarded) {
    const key = randomUUID();
    guarded.isProblem(t, await guarded.send(key, { steer: { cut: true } }), 'upstream_failed');
    t.match(await guarded.record(key), { state: 'unknown', status: null });
    for (const _ of [1, 2]) guarded.isProblem(t, await guarded.send(key), 'outcome_unknown');
    await query(
      guarded.sidecar.databaseUrl,
      `UPDATE oncegate.record SET state = 'dead_letter' WHERE key = '${key}'`,
    );
    guarded.isProblem(t, await guarded.send(key), 'outcome_unknown');
    t.equal(guarded.upstream.countOf(key), 1);
  },

  async 'no answer in time: 504, then unknown'(t, guarded) {
    const key = randomUUID();
    const { answer } = await guarded.sendAndHold(key, { path: '/slow' });
    guarded.isProblem(t, await answer, 'upstream_timeout');
    guarded.isProblem(t, await guarded.send(key, { path: '/slow' }), 'outcome_unknown');
    guarded.upstream.letGo();
    t.match(await guarded.record(key), { state: 'unknown', status: null });
    t.equal(guarded.upstream.countOf(key), 1);
  },

  async 'provably not sent: 502, released'(t, guarded) {
    const key = randomUUID();
    const path = '/nowhere';
    guarded.isProblem(t, await guarded.send(key, { path }), 'upstream_unreachable');
    const before = await guarded.record(key);
    t.match(before, { state: 'failed_retryable', status: null });
    guarded.isProblem(t, await guarded.send(key, { path }), 'upstream_unreachable');
    const after = await guarded.record(key);
    t.not(after?.attempt, before?.attempt, 'the retry was tried too');
    guarded.isProblem(t, await guarded.send(key, { path, body: '{}' }), 'key_reused');
  },

  async 'a released key is taken over, with a larger epoch'(t, guarded) {
    const key = randomUUID();
    const epochs = () =>
      guarded.upstream.executions
        .filter((one) => one.key === key)
        .map(
          (one) =>
            [BigInt(one.headers['oncegate-epoch'] as string), one.headers['oncegate-attempt']] as const,
        );
    const first = await guarded.send(key, { steer: { status: 429, body: 'not now' } });
    t.same([first.status, first.body.toString()], [429, 'not now'], "the client gets the upstream's answer");
    t.equal(first.headers['idempotency-status'], 'released');
    t.equal(first.headers['idempotency-expires'], undefined);
    const second = await guarded.send(key);
    t.same([second.status, second.headers['idempotency-status']], [201, 'executed']);
    t.equal((await guarded.send(key)).headers['idempotency-status'], 'replayed');
    const [one, two] = epochs();
    t.equal(epochs().length, 2);
    t.ok(one !== undefined && two !== undefined && two[0] > one[0] && two[1] !== one[1]);
    t.match(await guarded.record(key), { state: 'completed', epoch: String(two?.[0]), attempt: two?.[1] });
  },

  async 'past retention the key runs again, for any request'(t, guarded) {
    const key = randomUUID();
    await guarded.send(key);
    await expire(guarded.sidecar.databaseUrl, key);
    const other = await guarded.send(key, { body: '{"amount":2}' });
    t.equal(other.headers['idempotency-status'], 'executed');
    guarded.isProblem(t, await guarded.send(key), 'key_reused');
    t.equal(guarded.upstream.countOf(key), 2);
    const [first, second] = guarded.upstream.executions
      .filter((one) => one.key === key)
      .map((one) => BigInt(one.headers['oncegate-epoch'] as string));
    t.ok(first !== undefined && second !== undefined && second > first);
  },

  async 'the log holds neither keys nor bodies nor credentials'(t, guarded) {
    const { upstream, sidecar } = guarded;
    const key = randomUUID();
    await guarded.send(key, {
      headers: { Authorization: 'Bearer credential' },
      body: '{"card":"secret one"}',
    });
    await guarded.send(key, { body: '{"card":"secret two"}' });
    await guarded.send(key, { steer: { cut: true } });
    const log = sidecar.lines.join('');
    t.match(log, '"verdict":"replay"');
    t.match(log, '"verdict":"key_reused"');
    t.notMatch(log, /secret|credential|amount/);
    const keys = upstream.executions.flatMap((one) => one.key ?? []).filter((one) => one.length > 20);
    t.same(
      keys.filter((one) => log.includes(one)),
      [],
    );
  },
};
