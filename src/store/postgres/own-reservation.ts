import { randomBytes, randomUUID } from 'node:crypto';
import { createMemos } from '../../core/memos.ts';
import type { RecordId } from '../../core/record.ts';
import { scopeOf } from '../../core/scope.ts';
import type { Reservation } from '../store.ts';

/** Milliseconds. */
const deadlineMs = 60_000;

/** Of a scope in four parts, which no request has. */
export function idOfOurs(purpose: string): RecordId {
  return { scope: scopeOf(createMemos(), ['oncegate', 'doctor', purpose, randomUUID()]), key: randomUUID() };
}

/**
 * A reservation of our own, to see whether the store takes it. It marks before it sends and never does: if we die, the sweeper
 * releases it and the reaper removes it. Without that it would be unknown, and wait for a person.
 */
export function reservationOfOurs(id: RecordId, instance: string, requestId: string): Reservation {
  return {
    ...id,
    attempt: randomUUID(),
    instance,
    fingerprint: { rule: 'doctor', digest: randomBytes(32), raw: randomBytes(32), headers: null },
    hadCredentials: false,
    tenant: null,
    method: 'POST',
    path: '/',
    requestId,
    deadlineMs,
    marks: true,
    abandoned: () => false,
  };
}
