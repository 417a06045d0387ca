import type { Test } from 'tap';
import type { RecordView } from '../../src/store/operator.ts';
import { type OperatorOptions, PostgresOperator } from '../../src/store/postgres/operator.ts';
import type { Reservation, Store } from '../../src/store/store.ts';
import { answer, heldBy, reserved, retentionMs } from './samples.ts';

export function operatorAt(t: Test, url: string, options: Partial<OperatorOptions> = {}): PostgresOperator {
  const operator = new PostgresOperator({ url, durability: 'strict', ...options });
  t.teardown(() => operator.close());
  return operator;
}

export const by = { actor: 'ann@test', reason: 'asked the bank' };
export const given = { answer: answer({ status: 200, body: Buffer.from('{"by":"hand"}') }), retentionMs };

/** An attempt whose answer never came. */
export async function doubtful(store: Store, changes: Partial<Reservation> = {}): Promise<Reservation> {
  const wanted = await reserved(store, changes);
  await store.markUnknownIfHeld({ ...heldBy(wanted), status: 502, error: 'the upstream hung up' });
  return wanted;
}

export async function completed(store: Store, changes: Partial<Reservation> = {}): Promise<Reservation> {
  const wanted = await reserved(store, changes);
  await store.completeIfHeld({ ...heldBy(wanted), answer: answer(), retentionMs });
  return wanted;
}

export async function viewOf(operator: PostgresOperator, id: Reservation): Promise<RecordView> {
  const view = await operator.at(id);
  if (view === null) throw new Error('no record');
  return view;
}
