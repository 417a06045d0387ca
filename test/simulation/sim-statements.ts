import { idOf, type RecordId, type State, sourcesOf } from '../../src/core/record.ts';
import { type Row, readColumns, unanswered } from './sim-row.ts';
import type { SimRows, SimServer } from './sim-server.ts';
import { SqlError } from './sql-error.ts';
import { arrayOf } from './wire-arrays.ts';

export type Run = (server: SimServer, values: readonly unknown[]) => SimRows;

const maxKeyBytes = 255;

type Item = RecordId & { readonly attempt: string } & Readonly<Record<string, unknown>>;

/** One object per item of a batch, from arrays of columns. */
function items(values: readonly unknown[], names: readonly string[]): Item[] {
  const columns = names.map((_, index) => arrayOf<unknown>(values[index]));
  return (columns[0] as unknown[]).map((_, at) => {
    const item: Record<string, unknown> = {};
    names.forEach((name, index) => {
      item[name] = columns[index]?.[at];
    });
    return item as Item;
  });
}

/** The items whose row is there and held by their attempt. */
function heldItems(server: SimServer, values: readonly unknown[], names: readonly string[]) {
  return items(values, ['scope', 'key', 'attempt', ...names]).flatMap((item) => {
    const row = server.rowAt(item);
    return row !== undefined && row.attempt === item.attempt ? [{ row, item }] : [];
  });
}

const reservationColumns = [
  'scope',
  'key',
  'attempt',
  'instance',
  'hadCredentials',
  'digest',
  'raw',
  'rule',
  'deadlineMs',
  'tenant',
  'method',
  'path',
  'requestId',
  'marks',
];

function reserve(server: SimServer, values: readonly unknown[]): SimRows {
  const all = items(values, reservationColumns);
  if (all.some(({ key }) => key.length > maxKeyBytes)) throw new SqlError('23514', 'key too long');
  return all.flatMap(({ marks, deadlineMs, ...item }) => {
    const id = idOf(item);
    if (server.rows.has(id)) return [];
    const epoch = server.nextEpoch();
    const times = { deadlineMs: server.nowMs + (deadlineMs as number), reservedMs: server.nowMs };
    const dispatched = marks ? false : null;
    const row: Row = {
      ...(item as unknown as Row),
      id,
      epoch,
      ...times,
      dispatched,
      ...unanswered,
      state: 'in_progress',
    };
    server.put(id, row, 'reserve');
    return [[row.attempt, String(epoch)]];
  });
}

const takeOverColumns = [
  'scope',
  'key',
  'previousAttempt',
  'previousEpoch',
  'previousState',
  ...reservationColumns.slice(2),
];

/** Of two that take over the same record PostgreSQL changes the row once, by whichever fits it first. */
function takeOver(server: SimServer, values: readonly unknown[]): SimRows {
  const fitting = new Map<string, { row: Row; item: Item }>();
  for (const item of items(values, takeOverColumns)) {
    const row = server.rowAt(item);
    if (row !== undefined && !fitting.has(row.id) && mayTakeOver(server, row, item))
      fitting.set(row.id, { row, item });
  }
  for (const id of fitting.keys()) server.mustBeFree(id);
  return [...fitting.values()].map(({ row, item }) => {
    const { attempt, instance, hadCredentials, digest, raw, rule, tenant, method, path, requestId } = item;
    const { marks, deadlineMs } = item;
    const request = { instance, hadCredentials, digest, raw, rule, tenant, method, path, requestId };
    const after = {
      ...row,
      attempt,
      ...request,
      ...unanswered,
      epoch: server.nextEpoch(),
      state: 'in_progress',
      deadlineMs: server.nowMs + (deadlineMs as number),
      reservedMs: server.nowMs,
      dispatched: marks === true ? false : null,
    } as Row;
    server.put(row.id, after, 'take_over');
    return [after.attempt, String(after.epoch)];
  });
}

function mayTakeOver({ nowMs }: SimServer, row: Row, item: Item): boolean {
  const { state } = row;
  if (row.attempt !== item['previousAttempt'] || String(row.epoch) !== item['previousEpoch']) return false;
  if (state !== item['previousState']) return false;
  if (!sourcesOf('in_progress', 'retry').includes(state)) return false;
  const isExpired = row.retainUntilMs !== null && row.retainUntilMs <= nowMs;
  if (state !== 'failed_retryable' && !isExpired) return false;
  return row.blockedUntilMs === null || row.blockedUntilMs <= nowMs;
}

function confirm(server: SimServer, values: readonly unknown[]): SimRows {
  const found = heldItems(server, values, ['state']).filter(({ row, item }) => row.state === item['state']);
  for (const { row } of found) server.mustBeFree(row.id);
  if (found.length > 0) server.touch();
  return found.map(({ row }) => [row.attempt, String(row.epoch), row.retainUntilMs]);
}

function markDispatched(server: SimServer, values: readonly unknown[]): SimRows {
  const found = heldItems(server, values, []).filter(
    ({ row }) => row.state === 'in_progress' && row.dispatched === false,
  );
  for (const { row } of found) server.mustBeFree(row.id);
  for (const { row } of found) server.put(row.id, { ...row, dispatched: true }, 'mark_dispatched');
  return found.map(({ row }) => [row.attempt]);
}

const settlementColumns = ['state', 'status', 'headers', 'body', 'closeFramed', 'error', 'retentionMs'];

function settle(server: SimServer, values: readonly unknown[]): SimRows {
  const found = heldItems(server, values, settlementColumns).filter(({ row, item }) =>
    sourcesOf(item['state'] as State, 'attempt').includes(row.state),
  );
  for (const { row } of found) server.mustBeFree(row.id);
  return found.map(({ row, item }) => {
    const { state, status, headers, body, closeFramed } = item;
    const retentionMs = item['retentionMs'] as number | null;
    const answer = { state, status, headers, body, closeFramed } as Pick<
      Row,
      'state' | 'status' | 'headers' | 'body' | 'closeFramed'
    >;
    const completedMs = state === 'completed' ? server.nowMs : null;
    const retainUntilMs = retentionMs === null ? null : server.nowMs + retentionMs;
    server.put(row.id, { ...row, ...answer, dispatched: null, completedMs, retainUntilMs }, 'settle');
    return [row.attempt, retainUntilMs];
  });
}

function read(server: SimServer, values: readonly unknown[]): SimRows {
  const { nowMs } = server;
  const [scope, key] = values;
  const whole = typeof key === 'string';
  const ids = whole ? [{ scope: scope as Buffer, key }] : items(values, ['scope', 'key']);
  return ids.flatMap((id) => {
    const row = server.rowAt(id);
    if (row === undefined) return [];
    if (row.state === 'completed' && server.hasStandby) server.touch();
    return [readColumns(row, { nowMs, whole })];
  });
}

/** By label: those that requests make. */
export const statements: Record<string, Run> = {
  reserve,
  take_over: takeOver,
  confirm,
  mark_dispatched: markDispatched,
  settle,
  read,
  check: () => [[1]],
  keep_late_answer(server, values) {
    const [, , attempt] = values as [Buffer, string, string];
    server.keepLateAnswer(attempt);
    return [];
  },
  note_broken_answer(server) {
    server.touch();
    return [];
  },
};
