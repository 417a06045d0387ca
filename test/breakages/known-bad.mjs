/**
 * What a sidecar like this one usually gets wrong: each was seen in the wild, each looks reasonable, each breaks a promise.
 * The form is that of test/breakages.mjs: `npm run breakages -- 'known bad'`.
 *
 * The simulation has SQL's guards in a model of its own. A variant that stands in SQL is put into that model as well, which
 * shows that the simulation's ledger sees what comes of it.
 */
const simulation = 'test/simulation/schedules.test.ts';

export const breakages = [
  // Taking the key.
  {
    rule: 'known bad: check, then insert',
    in: 'reserve',
    find: 'ON CONFLICT (scope, key) DO NOTHING\nRETURNING attempt, epoch',
    replace:
      'WHERE NOT EXISTS (SELECT FROM oncegate.record AS seen WHERE seen.scope = item.scope AND seen.key = item.key)\nON CONFLICT (scope, key) DO UPDATE SET attempt = excluded.attempt, epoch = excluded.epoch\nRETURNING attempt, epoch',
    test: 'test/store/postgres.test.ts',
    alsoBy: [
      {
        test: simulation,
        more: [
          {
            in: 'reserve',
            find: 'if (server.rows.has(id)) return [];',
            replace:
              'const seen = server.rows.get(id);\n    if (seen !== undefined && server.nowMs - seen.reservedMs > 5) return [];',
          },
        ],
      },
    ],
  },
  {
    rule: 'known bad: one statement inserts and reads, and racers get no row at all',
    in: 'reserve',
    find: "'reserve',\n  `INSERT INTO",
    replace: "'reserve',\n  `WITH inserted AS (INSERT INTO",
    more: [
      {
        in: 'reserve',
        find: 'ON CONFLICT (scope, key) DO NOTHING\nRETURNING attempt, epoch`',
        replace:
          "ON CONFLICT (scope, key) DO NOTHING\nRETURNING attempt, epoch)\nSELECT attempt::text, epoch FROM inserted\nUNION ALL\nSELECT 'seen ' || record.attempt, record.epoch\nFROM unnest($1::bytea[], $2::text[]) AS asked(scope, key)\nJOIN oncegate.record AS record ON record.scope = asked.scope AND record.key = asked.key`",
      },
      {
        // Its columns still come by `read`; what counts is whether the one statement saw the row.
        in: 'Reserver.#withEpochs',
        find: '        lost.set(loser, results[index] ?? wentAway(mayExist));',
        replace:
          "        const result = results[index];\n        const isUnseen = result?.kind === 'exists' && !epochs.has(`seen ${result.record.attempt}`);\n        lost.set(loser, result && !isUnseen ? result : { kind: 'unavailable', cause: new Error('no row at all'), mayExist });",
      },
    ],
    test: 'test/store/postgres.test.ts',
  },
  {
    rule: 'known bad: a record in progress is taken again after a time',
    in: 'moves',
    find: "{ from: 'failed_retryable', to: 'in_progress', by: ['retry'] },",
    replace:
      "{ from: 'failed_retryable', to: 'in_progress', by: ['retry'] },\n  { from: 'in_progress', to: 'in_progress', by: ['retry'] },",
    more: [
      {
        in: 'takeOver',
        find: "AND (record.state = 'failed_retryable' OR",
        replace:
          "AND (record.state = 'failed_retryable' OR record.reserved_at < clock_timestamp() - interval '1 s' OR",
      },
      {
        in: 'decide',
        find: "return { kind: 'in_progress', attempt: record.attempt };",
        replace: "return { kind: 'take_over', previous: record };",
      },
    ],
    test: 'test/e2e/crash.test.ts',
    alsoBy: [
      {
        test: simulation,
        more: [
          {
            in: 'mayTakeOver',
            find: "if (state !== 'failed_retryable' && !isExpired) return false;",
            replace:
              "if (state !== 'failed_retryable' && !isExpired && nowMs - row.reservedMs < 1_000) return false;",
          },
        ],
      },
    ],
  },
  {
    // Not by the simulation: the state is still compared, so it takes over only what a later attempt has released.
    rule: 'known bad: a takeover does not ask from which attempt',
    in: 'takeOver',
    find: '  AND record.attempt = item.previous_attempt::uuid\n  AND record.epoch = item.previous_epoch::bigint\n',
    replace: '',
    test: 'test/store/postgres.test.ts',
  },
  {
    rule: 'known bad: a waiter takes the key',
    in: 'decideAndRun',
    find: "      exchange.verdict = reply.kind === 'problem' ? reply.code : 'wait';",
    replace:
      "      if (reply.kind === 'problem' && reply.code === 'in_progress') return await decideAndRun(deps, exchange, wanted);\n      exchange.verdict = reply.kind === 'problem' ? reply.code : 'wait';",
    test: 'test/proxy/wait.test.ts',
    alsoBy: [{ test: simulation }],
  },
  {
    rule: 'known bad: a reservation whose answer was lost counts as soon as it is visible',
    in: 'Front.findOut',
    find: 'if (mine.length > 0) await this.#confirm(mine, confirmed);',
    replace:
      "for (const one of mine) confirmed.set(one.attempt, { kind: 'reserved', epoch: found.get(idOf(one))?.record.epoch as string });",
    test: 'test/store/unconfirmed-reserve.test.ts',
    alsoBy: [{ test: simulation }],
  },
  {
    // There is no rate limit yet: the bound of those who wait stands for it.
    rule: 'known bad: a limit is counted before an existing key is answered',
    in: 'claim',
    find: '  const instance = deps.lease.current();\n',
    replace:
      "  if (!deps.waiters.enter(wanted)) return { kind: 'refuse', code: 'in_progress' };\n  deps.waiters.leave(wanted);\n  const instance = deps.lease.current();\n",
    test: 'test/proxy/reserve.test.ts',
  },
  {
    rule: 'known bad: without its store it forwards all the same',
    in: 'claim',
    find: "exchange.error = result.cause; return { kind: 'refuse', code: 'store_unavailable' };",
    replace:
      "exchange.error = result.cause; isOurs = true; return { kind: 'own', attempt, epoch: '0', takenOver: false };",
    test: 'test/e2e/order.test.ts',
    alsoBy: [{ test: simulation }],
  },
  // The lease, and those who clean up.
  {
    rule: 'known bad: the sweeper frees the key',
    in: 'sweep',
    find: "  state = 'unknown',",
    replace: "  state = 'failed_retryable', retain_until = clock_timestamp() + interval '1 day',",
    test: 'test/e2e/crash.test.ts',
    alsoBy: [
      {
        test: simulation,
        more: [
          {
            in: 'passes',
            find: "(row) => ({ ...row, state: 'unknown' })",
            replace: 'released(server)',
          },
        ],
      },
    ],
  },
  {
    // Not by the simulation: the process has a guard of its own, and without either it takes more luck than a schedule has.
    rule: 'known bad: a lapsed lease lives again',
    in: 'renewLease',
    find: /  AND (instance\.)?lease_until > clock_timestamp\(\)\nRETURNING/,
    replace: 'RETURNING',
    test: 'test/store/lease.test.ts',
  },
  {
    rule: 'known bad: the lease is looked at when it is queued, not when it starts',
    in: 'forward',
    find: '        return !attempt.isOver && deps.lease.mayStart(attempt.instance);\n      },\n',
    replace: '        return may;\n      },\n',
    more: [
      {
        in: 'forward',
        find: '  const call = ',
        replace: '  const may = !attempt.isOver && deps.lease.mayStart(attempt.instance);\n  const call = ',
      },
    ],
    test: 'test/e2e/suspended.test.ts',
    alsoBy: [{ test: simulation }],
  },
  {
    rule: 'known bad: the reaper goes by the time of creation',
    in: 'findReapable',
    find: 'WHERE record.retain_until <= statement_timestamp()\nORDER BY record.retain_until',
    replace: 'WHERE record.reserved_at <= statement_timestamp()\nORDER BY record.reserved_at',
    more: [
      {
        in: 'reap',
        find: "  AND record.state IN ('completed', 'failed_retryable')\n  AND record.retain_until <= clock_timestamp()\nRETURNING",
        replace: '  AND record.reserved_at <= clock_timestamp()\nRETURNING',
      },
    ],
    test: 'test/store/postgres.test.ts',
    alsoBy: [
      {
        test: simulation,
        more: [
          {
            in: 'isExpired',
            find: 'return retainUntilMs !== null && retainUntilMs <= server.nowMs;',
            replace: 'return retainUntilMs !== 0;',
          },
          {
            in: 'passes',
            find: "(row) => (row.state === 'completed' || row.state === 'failed_retryable') && isExpired(server, row),",
            replace: '(row) => isExpired(server, row),',
          },
        ],
      },
    ],
  },
  // What a failure proves.
  {
    rule: 'known bad: a reset frees the key',
    in: 'endingOfFailure',
    find: 'if (!started) return',
    replace: "if (!started || ((error as { code?: string }).code ?? error.message) === 'ECONNRESET') return",
    test: 'test/e2e/failures.test.ts',
    alsoBy: [{ test: simulation }],
  },
  {
    rule: 'known bad: a timeout frees the key',
    in: 'endingOfFailure',
    find: 'if (!started) return',
    replace: "if (!started || (error instanceof UpstreamFault && error.code === 'timed_out')) return",
    test: 'test/e2e/failures.test.ts',
    alsoBy: [{ test: simulation }],
  },
  {
    rule: 'known bad: undici retries',
    in: 'UpstreamClient.send',
    find: 'this.#pool.dispatch(options, call);',
    replace:
      "this.#pool\n      .compose(interceptors.retry({ methods: ['POST'], minTimeout: 1, statusCodes: [500, 502, 503] }))\n      .dispatch(options, call);",
    more: [
      {
        file: 'src/upstream/client.ts',
        find: "Pool } from 'undici'",
        replace: "Pool, interceptors } from 'undici'",
      },
    ],
    test: 'test/e2e/failures.test.ts',
  },
  {
    rule: 'known bad: the upstream call is aborted with the client',
    in: 'forward',
    find: 'capture.attach(call);',
    replace:
      "capture.attach(call);\n  exchange.res.once('close', () => call.abort(new Error('client left')));",
    test: 'test/e2e/guarded.test.ts',
  },
  // The answer.
  {
    rule: 'known bad: the client is answered before the completion commits',
    in: 'complete',
    find: 'const result = await within(settleAndClose(deps, exchange, settling), unsavedMs);',
    replace:
      "void settleAndClose(deps, exchange, settling);\n  const result = { kind: 'settled', retainUntilMs: null } as SettleResult;",
    test: 'test/e2e/store-outage.test.ts',
    alsoBy: [{ test: simulation }],
  },
  {
    rule: 'known bad: a completion does not ask whose the record is',
    in: 'settle',
    find: '  AND record.attempt = item.attempt::uuid\n',
    replace: '',
    test: 'test/store/postgres.test.ts',
    alsoBy: [
      { test: 'test/e2e/suspended.test.ts' },
      {
        test: simulation,
        more: [
          {
            in: 'settle',
            find: 'const found = heldItems(server, values, settlementColumns).filter(',
            replace:
              "const found = items(values, ['scope', 'key', 'attempt', ...settlementColumns]).flatMap((item) => { const row = server.rowAt(item); return row === undefined ? [] : [{ row, item }]; }).filter(",
          },
        ],
      },
    ],
  },
  {
    rule: 'known bad: an answer that comes after a release is thrown away',
    in: 'moves',
    find: "  { from: 'failed_retryable', to: 'completed', by: ['attempt'] },\n",
    replace: '',
    test: 'test/store/postgres.test.ts',
  },
  // Who and what a key stands for.
  {
    rule: 'known bad: the scope is without its tenant',
    file: 'src/core/scope.ts',
    find: 'scopeOf(memos, [tenant, method, path])',
    replace: 'scopeOf(memos, [method, path])',
    test: 'test/e2e/guarded.test.ts',
    alsoBy: [{ test: simulation }],
  },
  {
    rule: 'known bad: the endpoint is the route, not the path',
    file: 'src/proxy/identify.ts',
    find: 'scopeAt(memos, { tenant, method, path }',
    replace: 'scopeAt(memos, { tenant, method, path: policy.route }',
    test: 'test/e2e/guarded.test.ts',
  },
  {
    rule: 'known bad: bodies are compared after JSON.parse',
    file: 'src/core/fingerprint.ts',
    find: "canonical('json', canonicalJson(body, ignored))",
    replace:
      "canonical('json', canonicalJson(((text) => { try { return Buffer.from(JSON.stringify(JSON.parse(text))); } catch { return body; } })(body.toString()), ignored))",
    test: 'test/core/fingerprint.test.ts',
  },
];
