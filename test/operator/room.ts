import type { Test } from 'tap';
import type { RecordId } from '../../src/core/record.ts';
import type { OperatorSettings } from '../../src/operator/settings.ts';
import type { RecordView } from '../../src/store/operator.ts';
import type { PostgresOperator } from '../../src/store/postgres/operator.ts';
import type { PostgresStore } from '../../src/store/postgres/postgres.ts';
import { operatorAt } from '../store/operator-harness.ts';
import { type PostgresHarness, postgresHarness } from '../store/postgres-harness.ts';

export const routeRetentionMs = 86_400_000;
export const maxStoredBodyBytes = 1_024;

/** As a config with one tenant and a scope by endpoint gives them. */
export function settings(changes: Partial<OperatorSettings> = {}): OperatorSettings {
  return {
    identity: 'tenant=none scope=endpoint',
    hasTenants: false,
    scopeParts: ['tenant', 'endpoint'],
    guardedMethods: ['POST', 'PATCH', 'POST'],
    sweepMs: 2_000,
    knowsRoutes: true,
    policyFor: () => ({ retentionMs: routeRetentionMs, maxStoredBodyBytes }),
    ...changes,
  };
}

export interface Room {
  readonly harness: PostgresHarness;
  /** As the sidecars use it. */
  readonly sidecar: PostgresStore;
  readonly store: PostgresOperator;
  seen(id: RecordId): Promise<RecordView>;
}

/** The operator room on a PostgreSQL of its own. */
export async function room(t: Test): Promise<Room> {
  const harness = await postgresHarness(t);
  const store = operatorAt(t, harness.url);
  const seen = async (id: RecordId) => {
    const record = await store.at(id);
    if (record === null) throw new Error('no record');
    return record;
  };
  return { harness, sidecar: harness.stores[0], store, seen };
}
