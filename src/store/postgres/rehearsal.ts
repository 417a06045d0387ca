import { randomBytes, randomUUID } from 'node:crypto';
import type pg from 'pg';
import { createMemos } from '../../core/memos.ts';
import type { State, StoredRecord } from '../../core/record.ts';
import { encodeStored } from '../../core/response.ts';
import { asError, OncegateError } from '../../errors.ts';
import type { Held, Reservation } from '../store.ts';
import { byteaArray, textArray } from './binary-array.ts';
import { idOfOurs, reservationOfOurs } from './own-reservation.ts';
import type { Rows } from './pool.ts';
import { reserveValues } from './reserver.ts';
import { parseRead } from './rows.ts';
import { type Settlement, settleValues } from './settler.ts';
import { removeProbeInstance } from './sql/doctor.ts';
import { closeLease, openLease, renewLease } from './sql/lease.ts';
import { reap } from './sql/loops.ts';
import { read, readWhole } from './sql/read.ts';
import { confirm, markDispatched, reserve, takeOver } from './sql/reserve.ts';
import { settle } from './sql/settle.ts';
import type { Statement } from './sql/statement.ts';
import { withClient } from './start-client.ts';
import { takeOverValues } from './taker.ts';

/** Milliseconds for one statement: it touches one row that nobody else can see. */
const statementMs = 5_000;
const leaseMs = 60_000;
/** So that the reaper's own statement removes it. */
const alreadyOverMs = -1_000;

/**
 * Plays a record of our own through the very statements that a request needs, from its reservation to its removal, before
 * anything is sent upstream: a store that takes reservations and cannot keep answers would leave each key unknown. All in one
 * transaction that leaves nothing, so nobody else ever sees the record, and if we die halfway the server undoes it. Rejects with
 * `store_refused` or, where the same may work in a while, `store_unreachable`.
 */
export async function rehearse(url: string): Promise<void> {
  await withClient(url, async (client) => {
    const ask = (what: Statement, values: unknown[]) => askOne(client, what, values);
    await ask(begin, []);
    await play(ask);
    // What was put off to the end, such as a deferred trigger, and the commit itself.
    await ask(commit, []);
  });
}

type Ask = (what: Statement, values: unknown[]) => Promise<Rows>;

const begin: Statement = { name: '', label: 'begin', text: 'BEGIN' };
const commit: Statement = { name: '', label: 'commit', text: 'COMMIT' };
const forgetInstance: Statement = { name: '', label: 'reap_instances', text: removeProbeInstance };

async function play(ask: Ask): Promise<void> {
  const id = idOfOurs('rehearsal');
  const instance = randomUUID();
  const first = reservationOfOurs(id, instance, 'oncegate start');
  await ask(openLease, [instance, leaseMs, null]);
  await ask(renewLease, [instance, leaseMs]);

  await ask(reserve, reserveValues([first]));
  await ask(confirm, [...heldValues(first), textArray(['in_progress'])]);
  await ask(settle, settleValues([settlementOf(first, 'failed_retryable', 60_000)]));

  const second: Reservation = { ...first, attempt: randomUUID() };
  const previous = await recordAt(ask, read, [byteaArray([id.scope]), textArray([id.key])]);
  await ask(takeOver, takeOverValues([{ previous, reservation: second }]));
  await ask(markDispatched, heldValues(second));
  await ask(settle, settleValues([settlementOf(second, 'unknown', null)]));

  const completion = settlementOf(second, 'completed', alreadyOverMs);
  await ask(settle, settleValues([completion]));
  const { state, answer } = await recordAt(ask, readWhole, [id.scope, id.key]);
  const isKept = state === 'completed' && answer?.body?.equals(completion.answer?.body as Buffer) === true;
  if (!isKept) throw refused(settle, 'the answer that is there afterwards is another');

  await ask(reap, heldValues(second));
  await ask(closeLease, [instance]);
  await ask(forgetInstance, [instance]);
}

function heldValues({ scope, key, attempt }: Held): unknown[] {
  return [byteaArray([scope]), textArray([key]), textArray([attempt])];
}

function settlementOf(held: Held, to: State & Settlement['to'], retentionMs: number | null): Settlement {
  const { scope, key, attempt } = held;
  const error = to === 'completed' ? null : 'rehearsal';
  const status = to === 'completed' ? 200 : null;
  const answer =
    to === 'completed'
      ? { status: 200, headers: encodeStored(createMemos(), []), body: randomBytes(64), closeFramed: false }
      : null;
  return { scope, key, attempt, to, status, answer, error, retentionMs };
}

async function recordAt(ask: Ask, what: Statement, values: unknown[]): Promise<StoredRecord> {
  const [row] = await ask(what, values);
  return parseRead(row as readonly unknown[]).record;
}

/** Each that touches a row touches exactly ours. */
async function askOne(client: pg.Client, what: Statement, values: unknown[]): Promise<Rows> {
  const asked = { text: what.text, values, rowMode: 'array' as const, query_timeout: statementMs };
  let result: pg.QueryArrayResult;
  try {
    result = await client.query(asked);
  } catch (error) {
    throw refusalOf(what, asError(error));
  }
  const touchesARow = what !== begin && what !== commit;
  if (touchesARow && result.rowCount !== 1)
    throw refused(what, `it met ${result.rowCount ?? 0} rows and not the one that was there`);
  return result.rows;
}

/**
 * By SQLSTATE. May go away by itself: the connection, its limits and the shutdown of a server, a failover (25006), a conflict or a
 * lock, a full disk, a cancelled statement. All else is about the statement, and would be the same again.
 */
const passing = /^(08|25|40|53|55P03|57|58)/;

function refusalOf(what: Statement, error: Error): OncegateError {
  const { code } = error as { code?: unknown };
  const sqlState = typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : null;
  if (sqlState === null || passing.test(sqlState)) {
    const said = sqlState === null ? error.message : `SQLSTATE ${sqlState}, ${error.message}`;
    return new OncegateError('store_unreachable', `the store did not carry out ${named(what)}: ${said}`, {
      cause: error,
    });
  }
  return refused(what, `SQLSTATE ${sqlState}, ${error.message}`, error);
}

function refused(what: Statement, why: string, cause?: Error): OncegateError {
  return new OncegateError(
    'store_refused',
    `the store refuses ${named(what)}: ${why}. Every request needs that statement, so nothing is served. ` +
      'Look for a missing right, or for a trigger, rule or policy on the tables in schema oncegate; a server that is not ' +
      'PostgreSQL may lack it.',
    cause === undefined ? {} : { cause },
  );
}

/** What a statement is for, by its label. */
const purposes: Readonly<Record<string, string>> = {
  open_lease: 'opens a lease',
  renew_lease: 'renews a lease',
  close_lease: 'ends a lease',
  reserve: 'reserves a key',
  confirm: 'confirms a write',
  take_over: 'takes a released key',
  mark_dispatched: 'marks a request as sent',
  settle: 'keeps an answer, frees a key or leaves it unknown',
  read: 'reads a record',
  reap: 'removes a record past its retention',
  reap_instances: 'removes an instance that has gone',
};

function named({ label }: Statement): string {
  const purpose = purposes[label];
  return purpose === undefined ? `"${label}"` : `the statement "${label}", which ${purpose}`;
}
