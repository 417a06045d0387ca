import t from 'tap';
import type { Finding } from '../../src/doctor/check.ts';
import { judgeReach, judgeTls } from '../../src/doctor/judge-reach.ts';
import {
  judgeClock,
  judgeConnections,
  judgeDurability,
  judgePooler,
  judgeStandbys,
  judgeVersion,
  judgeWritable,
} from '../../src/doctor/judge-server.ts';
import { connectFault } from '../../src/store/postgres/connect-fault.ts';

type Row = readonly [finding: Finding, level: Finding['level'], said: RegExp, exitCode?: number];

function judged(name: string, rows: readonly Row[]): void {
  t.test(name, async (t) => {
    for (const [finding, level, said, exitCode] of rows) {
      t.match(finding, { level, text: said, ...(exitCode === undefined ? {} : { exitCode }) });
      if (level === 'warning' || level === 'error') t.match(finding, { advice: /\w/ }, 'says what to do');
    }
  });
}

const server = { version: '18.4', versionNumber: 180_004, pid: 7, inRecovery: false, readOnly: false };
const at = (version: string, day: string) =>
  judgeVersion({ ...server, version, versionNumber: Number.parseInt(version) * 10_000 }, new Date(day));

judged('version', [
  [at('18.4', '2026-11-16'), 'ok', /^PostgreSQL 18\.4$/],
  [at('14.23', '2026-11-12'), 'ok', /14\.23/],
  [at('14.23', '2026-11-16'), 'warning', /no fixes any more since 2026-11-12/],
  [at('10.23', '2026-11-16'), 'warning', /since 2022-11-10/],
  [at('9.6.24', '2026-11-16'), 'error', /older than 10/, 1],
  [at('19.1', '2099-01-01'), 'ok', /19\.1/],
]);

judged('writable', [
  [judgeWritable(server), 'ok', /takes writes/],
  [judgeWritable({ ...server, inRecovery: true }), 'error', /standby/, 4],
  [judgeWritable({ ...server, readOnly: true }), 'error', /read-only/, 4],
]);

const durable = {
  synchronousCommit: 'on',
  fsync: 'on',
  fullPageWrites: 'on',
  synchronousStandbyNames: '',
  standbys: 0,
  mayLoseBy: null,
};

const notOnStandby = {
  ...durable,
  synchronousCommit: 'local',
  synchronousStandbyNames: '*',
  mayLoseBy: 'failover',
} as const;

judged('durability', [
  [judgeDurability(durable, 'strict'), 'ok', /synchronous_commit on, fsync on, full_page_writes on/],
  [judgeDurability({ ...durable, synchronousCommit: 'remote_apply' }, 'strict'), 'ok', /remote_apply/],
  [
    judgeDurability({ ...durable, synchronousCommit: 'off', mayLoseBy: 'crash' }, 'strict'),
    'error',
    /may lose/,
    2,
  ],
  [judgeDurability({ ...durable, fsync: 'off', mayLoseBy: 'crash' }, 'strict'), 'error', /fsync off/, 2],
  [judgeDurability({ ...durable, fsync: 'off', mayLoseBy: 'crash' }, 'relaxed'), 'warning', /may lose/],
  [judgeDurability({ ...durable, fullPageWrites: 'off' }, 'strict'), 'warning', /torn pages/],
  [judgeDurability({ ...durable, synchronousCommit: 'local' }, 'strict'), 'ok', /local/],
  [
    judgeDurability(notOnStandby, 'strict'),
    'error',
    /local.*synchronous_standby_names '\*'.*a failover may lose/,
    2,
  ],
  [judgeDurability(notOnStandby, 'relaxed'), 'warning', /a failover may lose/],
]);

judged('standbys', [
  [judgeStandbys(durable), 'ok', /none attached/],
  [judgeStandbys({ ...durable, standbys: 1 }), 'warning', /^1 standby, none of them synchronous/],
  [judgeStandbys({ ...durable, standbys: 2, synchronousStandbyNames: 'ANY 1 (*)' }), 'ok', /ANY 1/],
]);

judged('pooler', [
  [judgePooler(server, 7), 'ok', /none/],
  [judgePooler(server, 8), 'ok', /one stands between.*to the primary/],
]);

judged('connections', [
  [judgeConnections({ max: 100, reserved: 3, inUse: 87 }, 10, 1), 'ok', /87 in use, 10 free/],
  [judgeConnections({ max: 100, reserved: 3, inUse: 88 }, 10, 1), 'warning', /9 free; store\.poolSize is 10/],
  [judgeConnections({ max: 100, reserved: 3, inUse: 78 }, 10, 2), 'warning', /for each of 2 workers/],
]);

judged('clock', [
  [judgeClock({ aheadMs: 0.4, roundTripMs: 1 }), 'ok', /^as ours/],
  [judgeClock({ aheadMs: 4_900, roundTripMs: 2 }), 'ok', /5 s ahead of ours/],
  [judgeClock({ aheadMs: -6_000, roundTripMs: 2 }), 'warning', /^6 s behind ours/],
  [judgeClock({ aheadMs: 6_000, roundTripMs: 3_000 }), 'ok', /within 1501 ms/],
]);

const place = { host: 'db.internal', port: 5432, database: 'app' };
const refused = (code: string | null) =>
  judgeReach({
    kind: 'failed',
    place,
    fault: connectFault(Object.assign(new Error('why'), code && { code }), place),
  });

judged('reachable', [
  [judgeTls(place, 'TLSv1.3'), 'ok', /^db\.internal:5432\/app, TLSv1\.3$/],
  [judgeTls(place, null), 'warning', /without TLS: .* in clear/],
  [judgeTls({ ...place, host: '127.0.0.1' }, null), 'ok', /without TLS$/],
  [judgeTls({ ...place, host: '/run/postgresql' }, null), 'ok', /without TLS$/],
  [refused('28P01'), 'error', /^db\.internal:5432\/app refuses: why$/, 4],
  [refused('53300'), 'error', /does not answer/, 4],
  [refused('57P03'), 'error', /does not answer/, 4],
  [refused('ENOTFOUND'), 'error', /does not answer/, 4],
  [refused(null), 'error', /does not answer/, 4],
  [refused('CERT_HAS_EXPIRED'), 'error', /^db\.internal:5432\/app is not trusted: why$/, 4],
]);
