import { sourcesOf, waitingStates } from '../../src/core/record.ts';
import type { Row } from './sim-row.ts';
import type { SimServer } from './sim-server.ts';
import type { Run } from './sim-statements.ts';
import { SqlError } from './sql-error.ts';
import { arrayOf } from './wire-arrays.ts';

const dayMs = 86_400_000;

function held(server: SimServer, values: readonly unknown[]): Row[] {
  const [scopes, keys, attempts] = values.slice(0, 3).map((one) => arrayOf<unknown>(one));
  return (keys as string[]).flatMap((key, at) => {
    const row = server.rowAt({ scope: scopes?.[at] as Buffer, key });
    return row !== undefined && row.attempt === attempts?.[at] ? [row] : [];
  });
}

function isLive(server: SimServer, instance: string): boolean {
  return (server.instances.get(instance) ?? Number.NEGATIVE_INFINITY) > server.nowMs;
}

/** All or none, as one statement does. */
function change(server: SimServer, rows: readonly Row[], by: string, to: (row: Row) => Row | null) {
  for (const row of rows) server.mustBeFree(row.id);
  for (const row of rows) server.put(row.id, to(row), by);
  return rows.map((row) => [row.attempt]);
}

function isExpired(server: SimServer, { retainUntilMs }: Row): boolean {
  return retainUntilMs !== null && retainUntilMs <= server.nowMs;
}

const released =
  (server: SimServer) =>
  (row: Row): Row => ({
    ...row,
    state: 'failed_retryable',
    retainUntilMs: server.nowMs + dayMs,
    dispatched: null,
  });

/** By label: those of the lease and the loops. */
export const passes: Record<string, Run> = {
  open_lease(server, [instance, leaseMs]) {
    if (server.instances.has(instance as string)) throw new SqlError('23505', 'exists');
    server.putLease(instance as string, server.nowMs + (leaseMs as number));
    return [[instance]];
  },
  renew_lease(server, [instance, leaseMs]) {
    if (!isLive(server, instance as string)) return [];
    server.putLease(instance as string, server.nowMs + (leaseMs as number));
    return [[instance]];
  },
  close_lease(server, [instance]) {
    if (isLive(server, instance as string)) server.putLease(instance as string, server.nowMs);
    return [];
  },
  find_sweepable(server, [limit]) {
    const found = [...server.rows.values()]
      .filter((row) => row.state === 'in_progress')
      .filter((row) => row.deadlineMs <= server.nowMs || !isLive(server, row.instance))
      .sort((a, b) => a.deadlineMs - b.deadlineMs);
    return found.slice(0, limit as number).map((row) => {
      const isOverdue = row.deadlineMs <= server.nowMs;
      const isLeaseOver = !isLive(server, row.instance);
      const to = row.dispatched === false ? 'failed_retryable' : 'unknown';
      return [
        row.scope,
        row.key,
        row.attempt,
        row.method,
        row.path,
        row.requestId,
        row.instance,
        isOverdue,
        isLeaseOver,
        to,
      ];
    });
  },
  sweep(server, values) {
    const rows = held(server, values).filter(
      (row) => sourcesOf('unknown', 'sweeper').includes(row.state) && row.dispatched !== false,
    );
    return change(server, rows, 'sweep', (row) => ({ ...row, state: 'unknown' }));
  },
  release_undispatched(server, values) {
    const rows = held(server, values).filter(
      (row) => sourcesOf('failed_retryable', 'sweeper').includes(row.state) && row.dispatched === false,
    );
    return change(server, rows, 'release_undispatched', released(server));
  },
  release_never_sent(server, values) {
    const attempts = arrayOf<string>(values[2]);
    const instances = arrayOf<string>(values[3]);
    const rows = held(server, values).filter(
      ({ attempt, instance, state }) =>
        instance === instances[attempts.indexOf(attempt)] &&
        sourcesOf('failed_retryable', 'attempt').includes(state),
    );
    return change(server, rows, 'release_never_sent', released(server));
  },
  find_reapable(server, [limit]) {
    const found = [...server.rows.values()]
      .filter((row) => isExpired(server, row))
      .sort((a, b) => (a.retainUntilMs as number) - (b.retainUntilMs as number));
    return found.slice(0, limit as number).map((row) => [row.scope, row.key, row.attempt]);
  },
  reap(server, values) {
    const rows = held(server, values).filter(
      (row) => (row.state === 'completed' || row.state === 'failed_retryable') && isExpired(server, row),
    );
    return change(server, rows, 'reap', () => null);
  },
  reap_instances(server) {
    for (const [instance, untilMs] of server.instances)
      if (untilMs < server.nowMs - dayMs) server.putLease(instance, null);
    return [];
  },
  reap_late_answers: () => [],
  census(server) {
    const rows = [...server.rows.values()];
    const running = rows.filter(({ state }) => state === 'in_progress');
    const overdue = running.filter(({ deadlineMs }) => deadlineMs < server.nowMs);
    const waiting = waitingStates.map((which) => rows.filter(({ state }) => state === which));
    const reserved = waiting.flat().map(({ reservedMs }) => reservedMs);
    const oldestMs = reserved.length === 0 ? null : server.nowMs - Math.min(...reserved);
    const counts = [running, overdue, ...waiting].map(({ length }) => length);
    return [[...counts, oldestMs, server.lateAnswers.size]];
  },
};
