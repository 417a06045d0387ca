import type { AuditEntry, LateView, RecordView } from '../operator.ts';

type Fields<T> = readonly (keyof T)[];

/** In the order of sql/operator-look.ts's columns. */
const viewFields: Fields<RecordView> = [
  'scope',
  'key',
  'attempt',
  'epoch',
  'state',
  'method',
  'path',
  'tenant',
  'requestId',
  'status',
  'lastError',
  'hadCredentials',
  'dispatched',
  'seenAtMs',
  'reservedAtMs',
  'deadlineMs',
  'completedAtMs',
  'retainUntilMs',
  'blockedUntilMs',
  'bodyBytes',
  'instance',
  'instanceAlive',
];

const auditFields: Fields<AuditEntry> = ['atMs', 'actor', 'action', 'reason', 'epoch', 'from', 'to'];
const lateFields: Fields<LateView> = [
  'attempt',
  'requestId',
  'outcome',
  'status',
  'receivedAtMs',
  'bodyBytes',
];

type Row = readonly unknown[];

function parse<T>(fields: Fields<T>, row: Row): T {
  return Object.fromEntries(fields.map((field, i) => [field, row[i]])) as T;
}

export const parseView = (row: Row): RecordView => parse(viewFields, row);
export const parseAudit = (row: Row): AuditEntry => parse(auditFields, row);
export const parseLate = (row: Row): LateView => parse(lateFields, row);
