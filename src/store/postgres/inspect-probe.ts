import { randomBytes, randomUUID } from 'node:crypto';
import { createMemos } from '../../core/memos.ts';
import type { RecordId, StoredAnswer } from '../../core/record.ts';
import { encodeStored } from '../../core/response.ts';
import { asError, OncegateError } from '../../errors.ts';
import type { ReserveResult } from '../store.ts';
import { openSession } from './inspect-session.ts';
import { idOfOurs, reservationOfOurs } from './own-reservation.ts';
import { type PostgresOptions, PostgresStore } from './postgres.ts';
import { rehearse } from './rehearsal.ts';
import { probeRequestId, removeEveryProbe, removeProbe, removeProbeInstance } from './sql/doctor.ts';

export interface ProbeFacts {
  readonly outcome:
    | { readonly kind: 'replayed'; readonly commitMs: number }
    | { readonly kind: 'failed'; readonly at: 'reserve' | 'complete' | 'replay'; readonly reason: string };
  /** Why the probe's record could not be removed, and the statement that does; null: it is gone. */
  readonly leftBehind: { readonly reason: string; readonly remedy: string } | null;
}

/** Milliseconds for the whole probe: a settlement asks again for as long as its store is open. */
const probeMs = 10_000;
/** Short, so that the reaper removes what we could not. */
const retentionMs = 60_000;

/** One key through the real store: reserved, completed, and asked for again by a second attempt. Then it is removed. */
export async function probe(options: PostgresOptions): Promise<ProbeFacts> {
  const id = idOfOurs('probe');
  const instance = randomUUID();
  const store = new PostgresStore({ ...options, poolSize: 1 });
  const timer = setTimeout(() => void store.close(0), probeMs);
  let outcome: ProbeFacts['outcome'];
  try {
    outcome = await play(store, id, instance);
  } catch (error) {
    outcome = { kind: 'failed', at: 'reserve', reason: asError(error).message };
  } finally {
    clearTimeout(timer);
    // Before the removal, so that nothing of ours is still to come.
    await store.close(0);
  }
  const reason = await remove(options.url, id, instance);
  return { outcome, leftBehind: reason === null ? null : { reason, remedy: removeEveryProbe } };
}

/** Whether the store carries out all that a request needs, as `serve` asks before it is ready. */
export async function inspectStatements(url: string): Promise<OncegateError | null> {
  try {
    await rehearse(url);
    return null;
  } catch (error) {
    if (error instanceof OncegateError) return error;
    throw error;
  }
}

async function play(store: PostgresStore, id: RecordId, instance: string): Promise<ProbeFacts['outcome']> {
  // A live lease: without one the sweeper of a running sidecar would call the record unknown.
  await store.openLease(instance, retentionMs);
  // Opens the connection, which is not to be measured.
  await store.check();
  const first = reservationOfOurs(id, instance, probeRequestId);
  const startMs = performance.now();
  const reserved = await store.reserve(first);
  const commitMs = performance.now() - startMs;
  if (reserved.kind !== 'reserved') return { kind: 'failed', at: 'reserve', reason: reasonOf(reserved) };

  const answer = {
    status: 200,
    headers: encodeStored(createMemos(), []),
    body: randomBytes(64),
    closeFramed: false,
  };
  const settled = await store.completeIfHeld({ ...id, attempt: first.attempt, answer, retentionMs });
  if (settled.kind !== 'settled') {
    const reason = settled.kind === 'unconfirmed' ? settled.cause.message : 'another attempt has the record';
    return { kind: 'failed', at: 'complete', reason };
  }

  const again = await store.reserve({ ...first, attempt: randomUUID() });
  if (again.kind === 'exists' && isSame(again.record.answer, answer)) return { kind: 'replayed', commitMs };
  return { kind: 'failed', at: 'replay', reason: reasonOf(again) };
}

function isSame(stored: StoredAnswer | null, answer: StoredAnswer): boolean {
  return stored?.status === answer.status && stored.body?.equals(answer.body ?? Buffer.alloc(0)) === true;
}

function reasonOf(result: ReserveResult): string {
  switch (result.kind) {
    case 'unavailable':
      return result.cause.message;
    case 'exists':
      return `the record is there, ${result.record.state}, with another answer`;
    case 'reserved':
      return 'the same key was reserved twice';
    case 'abandoned':
      return 'nothing was sent';
  }
}

/** On a connection of its own: the one before may be what failed. Says why it did not work, or null. */
async function remove(url: string, id: RecordId, instance: string): Promise<string | null> {
  const opened = await openSession(url);
  if (opened.kind === 'failed') return opened.fault.reason;
  try {
    await opened.session.run(removeProbe, [id.scope, id.key]);
    await opened.session.run(removeProbeInstance, [instance]);
    return null;
  } catch (error) {
    return asError(error).message;
  } finally {
    await opened.session.close();
  }
}
