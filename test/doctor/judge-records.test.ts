import t from 'tap';
import { judgeProbe, judgeTimes, judgeUnknown, judgeVacuum } from '../../src/doctor/judge-records.ts';
import { judgePrivileges, judgeSchema } from '../../src/doctor/judge-schema.ts';
import { judgeUpstream } from '../../src/doctor/judge-upstream.ts';

t.test('vacuum: many dead rows, and more than half', async (t) => {
  const facts = {
    serverOn: true,
    tableOn: true,
    live: 100_000,
    dead: 0,
    sinceAutovacuumMs: 60_000,
    bytes: 1e9,
  };
  t.match(judgeVacuum({ ...facts, dead: 49_999 }), {
    level: 'ok',
    text: /100,000 rows, 49,999 dead, 954 MB/,
  });
  t.match(judgeVacuum({ ...facts, dead: 50_000 }), { level: 'warning', advice: /VACUUM/ });
  t.match(judgeVacuum({ ...facts, live: 10, dead: 9_999 }), { level: 'ok' }, 'few are no trouble');
  t.match(judgeVacuum({ ...facts, serverOn: false }), { level: 'warning', text: /autovacuum is off/ });
  t.match(judgeVacuum(null), { level: 'skipped' });
  t.match(judgeUnknown(null, ''), { level: 'skipped' });
});

t.test('probe: what failed, what was left, what is slow', async (t) => {
  const outcome = { kind: 'replayed', commitMs: 500 } as const;
  const leftBehind = { reason: 'kept', remedy: 'run this' };
  t.match(judgeProbe({ outcome, leftBehind: null }, 5_000), { level: 'ok', text: /a commit took 500 ms/ });
  t.match(judgeProbe({ outcome, leftBehind: null }, 4_999), { level: 'warning', advice: /raise lease/ });
  t.match(judgeProbe({ outcome, leftBehind }, 60_000), { level: 'warning', advice: /run this/ });
  const failed = { kind: 'failed', at: 'complete', reason: 'no room' } as const;
  t.match(judgeProbe({ outcome: failed, leftBehind }, 60_000), {
    level: 'error',
    text: /complete failed: no room/,
    advice: /\n.*\(kept\): run this$/,
    exitCode: 1,
  });
});

t.test('times: against the timeout, then against the lease', async (t) => {
  const judge = (p99Ms: number) => judgeTimes({ count: 3, p99Ms, maxMs: 90_000 }, 30_000, 20_000);
  t.match(judge(19_000), { level: 'ok' });
  t.match(judge(21_000), { level: 'warning', advice: /lease/ });
  t.match(judge(25_000), { level: 'warning', advice: /upstream\.timeout/ });
});

t.test('schema and privileges where there is nothing yet', async (t) => {
  const none = { role: 'app', database: 'shop', schemaExists: false, mayCreateSchema: true, missing: [] };
  t.match(judgePrivileges(none), { level: 'skipped' });
  t.match(judgePrivileges({ ...none, mayCreateSchema: false }), {
    level: 'warning',
    advice: /GRANT CREATE ON DATABASE shop TO app;/,
  });
  t.match(judgeSchema({ kind: 'refused', reason: 'no' }, 'check'), { level: 'error', exitCode: 4 });
});

t.test('upstream: a certificate that ends soon', async (t) => {
  const now = new Date('2026-11-16T00:00:00Z');
  const until = (day: string) =>
    judgeUpstream(
      'https://shop.example',
      {
        kind: 'reached',
        address: '192.0.2.7',
        tookMs: 1,
        certificate: { names: 'shop.example', validUntil: new Date(day), protocol: 'TLSv1.3' },
      },
      now,
    );
  t.match(until('2026-12-01'), {
    level: 'ok',
    text: /TLSv1\.3, certificate for shop\.example, good for 15 d/,
  });
  t.match(until('2026-11-29'), { level: 'warning', text: /ends on 2026-11-29/, advice: /renew/ });
  for (const code of ['ENOTFOUND', 'ECONNREFUSED', 'UND_ERR_CONNECT_TIMEOUT', 'CERT_HAS_EXPIRED', 'EPROTO'])
    t.match(judgeUpstream('https://a', { kind: 'failed', code, reason: 'why' }, now), {
      level: 'error',
      advice: /\w/,
      exitCode: 1,
    });
});
