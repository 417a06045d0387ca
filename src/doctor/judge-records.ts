import { duration } from '../config/duration.ts';
import type { OncegateError } from '../errors.ts';
import type { ProbeFacts } from '../store/postgres/inspect-probe.ts';
import type { CountFacts, TimeFacts, VacuumFacts } from '../store/postgres/inspect-records.ts';
import { type Finding, failure, ok, skipped, warning } from './check.ts';
import { roughly } from './roughly.ts';

/** Autovacuum comes at a fifth by default: at half it does not keep up. Few rows are no trouble, whatever their share. */
const deadShare = 0.5;
const deadRows = 10_000;

export function judgeVacuum(facts: VacuumFacts | null): Finding {
  if (facts === null) return skipped('there is no table oncegate.record');
  const { serverOn, tableOn, live, dead, sinceAutovacuumMs, bytes } = facts;
  const last = sinceAutovacuumMs === null ? 'not come yet' : `last ${roughly(sinceAutovacuumMs)} ago`;
  const rows = `${live.toLocaleString('en')} rows, ${dead.toLocaleString('en')} dead`;
  const text = `${rows}, ${sizeText(bytes)}; autovacuum ${last}`;
  if (!serverOn) return warning(`autovacuum is off: ${rows}`, 'set autovacuum and track_counts to on');
  if (!tableOn)
    return warning(
      `autovacuum is off for this table: ${rows}`,
      'run: ALTER TABLE oncegate.record RESET (autovacuum_enabled);',
    );
  if (dead < deadRows || dead < live * deadShare) return ok(text);
  return warning(
    `${text}, which does not keep up`,
    'run: VACUUM oncegate.record; look for transactions open for long; lower autovacuum_vacuum_scale_factor',
  );
}

export function judgeOverdue({ count, oldestMs }: CountFacts, sweepMs: number): Finding {
  if (count === 0) return ok('no request is past its deadline');
  return warning(
    `${records(count)} in_progress past their deadline, the oldest by ${roughly(oldestMs ?? 0)}`,
    `a running sidecar makes them unknown within loops.sweep (${duration.format(sweepMs)}); if they stay, none runs`,
  );
}

/** `storeFlags`: what a command needs to find the same store. */
export function judgeUnknown(facts: CountFacts | null, storeFlags: string): Finding {
  if (facts === null)
    return skipped('not counted: it took too long, for very many are unknown or the table is locked');
  const { count, oldestMs } = facts;
  if (count === 0) return ok('no outcome is unknown');
  return warning(
    `${records(count)} unknown, the oldest since ${roughly(oldestMs ?? 0)}; no retry runs them`,
    `run: oncegate keys list${storeFlags}\nfind out from the upstream what became of each; oncegate keys show ID${storeFlags} says how to settle it`,
  );
}

/** null: each was carried out. */
export function judgeStatements(failed: OncegateError | null): Finding {
  if (failed === null) return ok('a record of our own went through every statement that a request needs');
  return failure(failed.message, 'serve does not start before that is mended', failed.code);
}

/** A lease is renewed three times over; a commit must be short against that. */
const commitsPerLease = 10;

export function judgeProbe({ outcome, leftBehind }: ProbeFacts, leaseMs: number): Finding {
  const remedy =
    leftBehind === null ? '' : `\nits record was not removed (${leftBehind.reason}): ${leftBehind.remedy}`;
  if (outcome.kind === 'failed')
    return failure(
      `a key of our own: ${outcome.at} failed: ${outcome.reason}`,
      `look into the log of PostgreSQL${remedy}`,
    );
  if (leftBehind !== null)
    return warning(
      `a key of our own was reserved, completed and replayed, but not removed: ${leftBehind.reason}`,
      `a running sidecar removes it within minutes; or run: ${leftBehind.remedy}`,
    );
  const text = `a key of our own was reserved, completed, replayed and removed; a commit took ${roughly(outcome.commitMs)}`;
  if (outcome.commitMs * commitsPerLease <= leaseMs) return ok(text);
  return warning(
    `${text}, which is long for a lease of ${duration.format(leaseMs)}`,
    'raise lease, or find out why PostgreSQL commits slowly',
  );
}

/** Of the timeout. Above it the slowest good answers are close to being cut. */
const timeoutShare = 0.8;

/** `timeoutMs`: the longest of all upstreams. */
export function judgeTimes({ count, p99Ms, maxMs }: TimeFacts, timeoutMs: number, leaseMs: number): Finding {
  if (count === 0 || p99Ms === null || maxMs === null) return ok('no completed request to measure yet');
  const requests = `requests measured: ${count.toLocaleString('en')}; 99% took up to ${roughly(p99Ms)}, the slowest ${roughly(maxMs)}`;
  const text = `${requests}; upstream.timeout ${duration.format(timeoutMs)}, lease ${duration.format(leaseMs)}`;
  if (p99Ms > timeoutMs * timeoutShare)
    return warning(text, 'raise upstream.timeout: what takes longer leaves its key unknown');
  if (p99Ms > leaseMs)
    return warning(
      text,
      'raise lease above that: a sidecar that loses the store meanwhile has its requests called unknown',
    );
  return ok(text);
}

function sizeText(bytes: number): string {
  return bytes < 1024 ** 2
    ? `${Math.ceil(bytes / 1024)} kB`
    : `${Math.round(bytes / 1024 ** 2).toLocaleString('en')} MB`;
}

function records(count: number): string {
  return count === 1 ? '1 record is' : `${count.toLocaleString('en')} records are`;
}
