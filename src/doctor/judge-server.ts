import type {
  ClockFacts,
  ConnectionFacts,
  DurabilityFacts,
  ServerFacts,
} from '../store/postgres/inspect-server.ts';
import { type Finding, failure, ok, warning } from './check.ts';
import { roughly } from './roughly.ts';

/** Last day with fixes, as PostgreSQL's versioning policy has it. Later lines are not known here. */
const endOfLife: Readonly<Record<number, string>> = {
  10: '2022-11-10',
  11: '2023-11-09',
  12: '2024-11-21',
  13: '2025-11-13',
  14: '2026-11-12',
  15: '2027-11-11',
  16: '2028-11-09',
  17: '2029-11-08',
  18: '2030-11-14',
};

/** The oldest on which the store's contract suite was run. */
const oldestMajor = 10;

export function judgeVersion({ version, versionNumber }: ServerFacts, now: Date): Finding {
  const major = Math.floor(versionNumber / 10_000);
  const text = `PostgreSQL ${version}`;
  const upgrade = 'move to a line that still gets fixes: postgresql.org/support/versioning';
  if (major < oldestMajor)
    return failure(`${text} is older than ${oldestMajor}, the oldest that is known to work`, upgrade);
  const end = endOfLife[major];
  // To the end of that day, wherever it ends last.
  if (end === undefined || now.getTime() < Date.parse(end) + 2 * 86_400_000) return ok(text);
  return warning(`${text} gets no fixes any more since ${end}`, upgrade);
}

export function judgeWritable({ inRecovery, readOnly }: ServerFacts): Finding {
  if (inRecovery)
    return failure(
      'the server is a standby: it takes no writes',
      "name the primary in the store's URL; keys are never read from a replica",
      'store_unreachable',
    );
  if (readOnly)
    return failure(
      'transactions are read-only here (default_transaction_read_only)',
      'turn it off for this role, this database or the server: ALTER … RESET default_transaction_read_only',
      'store_unreachable',
    );
  return ok('takes writes');
}

export function judgeDurability(facts: DurabilityFacts, durability: 'strict' | 'relaxed'): Finding {
  const { synchronousCommit, fsync, fullPageWrites, synchronousStandbyNames, mayLoseBy } = facts;
  const text = `synchronous_commit ${synchronousCommit}, fsync ${fsync}, full_page_writes ${fullPageWrites}`;
  if (mayLoseBy !== null) {
    const standby = mayLoseBy === 'crash' ? '' : `, synchronous_standby_names '${synchronousStandbyNames}'`;
    const lost = `${text}${standby}: a ${mayLoseBy} may lose acknowledged keys, and their retries run again`;
    const remedy = mayLoseBy === 'crash' ? 'turn them on' : 'set synchronous_commit to on or remote_apply';
    return durability === 'strict'
      ? failure(lost, `${remedy}; or accept that with store.durability: relaxed`, 'store_not_durable')
      : warning(lost, `${remedy}; store.durability: relaxed accepts it as it is`);
  }
  if (fullPageWrites === 'off')
    return warning(`${text}: a crash may leave torn pages`, 'turn full_page_writes on');
  return ok(text);
}

export function judgeStandbys({ standbys, synchronousStandbyNames }: DurabilityFacts): Finding {
  const attached = standbys === 1 ? '1 standby' : `${standbys} standbys`;
  if (synchronousStandbyNames !== '')
    return ok(`${attached}, synchronous_standby_names is ${synchronousStandbyNames}`);
  if (standbys === 0) return ok('none attached');
  return warning(
    `${attached}, none of them synchronous: a failover may lose acknowledged keys, and their retries run again`,
    'set synchronous_standby_names, for instance to ANY 1 (*)',
  );
}

export function judgePooler({ pid }: ServerFacts, greetedBy: number): Finding {
  if (pid === greetedBy) return ok('none between us and PostgreSQL');
  // Fine in any mode; but what we verify on a connection is then true of one server connection of several.
  return ok('one stands between us and PostgreSQL; it must send everything to the primary');
}

export function judgeConnections(
  { max, reserved, inUse }: ConnectionFacts,
  poolSize: number,
  workers: number,
): Finding {
  const free = max - reserved - inUse;
  const each = workers === 1 ? '' : `, for each of ${workers} workers`;
  const text = `${inUse} in use, ${free} free; store.poolSize is ${poolSize}${each}`;
  if (free >= poolSize * workers) return ok(text);
  return warning(text, 'raise max_connections, or lower store.poolSize or the number of replicas');
}

/** Milliseconds. What a client makes of Idempotency-Expires allows for less. */
const clockToleranceMs = 5_000;

export function judgeClock({ aheadMs, roundTripMs }: ClockFacts): Finding {
  const away = Math.abs(aheadMs);
  const side = aheadMs > 0 ? 'ahead of' : 'behind';
  // What we cannot tell: half a round trip, and the millisecond that our clock counts in.
  const doubt = roundTripMs / 2 + 1;
  if (away <= doubt) return ok(`as ours, within ${roughly(doubt)}`);
  const text = `${roughly(away)} ${side} ours, within ${roughly(doubt)}`;
  if (away - doubt <= clockToleranceMs) return ok(text);
  return warning(
    text,
    'set both by NTP: no promise depends on it, but Idempotency-Expires and the times in logs do',
  );
}
