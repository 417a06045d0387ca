import { createHash, randomUUID } from 'node:crypto';
import type { Fingerprint, RecordId, StoredAnswer, StoredRecord } from '../../src/core/record.ts';
import type { Held, Reservation, ReserveResult, Store } from '../../src/store/store.ts';

/** What tests of the store are made of: nothing here is ever the same twice, unless asked for. */
export function digest(of: string): Buffer {
  return createHash('sha256').update(of).digest();
}

export function someId(): RecordId {
  return { scope: digest(randomUUID()), key: randomUUID() };
}

export function someFingerprint(): Fingerprint {
  const headers = { list: 'a1', digest: digest(randomUUID()).toString('hex') };
  return { rule: 'canonical:1', digest: digest(randomUUID()), raw: digest(randomUUID()), headers };
}

export function reservation(changes: Partial<Reservation> = {}): Reservation {
  return {
    ...someId(),
    attempt: randomUUID(),
    instance: randomUUID(),
    fingerprint: someFingerprint(),
    hadCredentials: false,
    tenant: null,
    method: 'POST',
    path: '/v1/charges',
    requestId: randomUUID(),
    deadlineMs: 60_000,
    marks: false,
    abandoned: () => false,
    ...changes,
  };
}

export function answer(changes: Partial<StoredAnswer> = {}): StoredAnswer {
  return {
    status: 201,
    headers: Buffer.from('content-type: application/json\n'),
    body: Buffer.from('{"id":"ch_1"}'),
    closeFramed: false,
    ...changes,
  };
}

export const retentionMs = 3_600_000;

export function heldBy({ scope, key, attempt }: Held): Held {
  return { scope, key, attempt };
}

/** Reserves, and fails the test by throwing if it did not work. */
export async function reserved(store: Store, changes: Partial<Reservation> = {}): Promise<Reservation> {
  const wanted = reservation(changes);
  const result = await store.reserve(wanted);
  if (result.kind !== 'reserved') throw new Error(`not reserved: ${describe(result)}`);
  return wanted;
}

export async function recordAt(store: Store, id: RecordId): Promise<StoredRecord> {
  const [record] = await store.read([id]);
  if (record === null || record === undefined) throw new Error('no record');
  return record;
}

export function describe(result: ReserveResult): string {
  switch (result.kind) {
    case 'unavailable':
      return `unavailable: ${result.cause.message}`;
    case 'exists':
      return `exists: ${result.record.state} of ${result.record.attempt}`;
    default:
      return result.kind;
  }
}
