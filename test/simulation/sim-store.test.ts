import t, { type Test } from 'tap';
import type { RecordId } from '../../src/core/record.ts';
import { contract, type Harness } from '../store/contract.ts';
import type { Sent } from './sim-driver.ts';
import type { Row } from './sim-row.ts';
import { SimServer } from './sim-server.ts';
import { SimStore } from './sim-store.ts';

const dayMs = 86_400_000;

/** Stores whose wire carries everything at once and unharmed, on real time. */
async function simHarness(t: Test): Promise<Harness> {
  const server = new SimServer({ nowMs: () => Date.now(), hasStandby: true });
  const wire = {
    connect: async () => {},
    send: async ({ label, values }: Sent) => server.execute(label, values, true),
  };
  const another = () => {
    const store = new SimStore(wire);
    t.teardown(() => store.close(0));
    return store;
  };
  const edit = (id: RecordId, changes: Partial<Row>) => {
    const row = server.rowAt(id) as Row;
    server.put(row.id, { ...row, ...changes }, 'test');
  };
  return {
    stores: [another(), another()],
    another,
    async moveTimes(id, { retainUntilMs, deadlineMs }) {
      if (retainUntilMs !== undefined) edit(id, { retainUntilMs: Date.now() + retainUntilMs });
      if (deadlineMs !== undefined) edit(id, { deadlineMs: Date.now() + deadlineMs });
    },
    async endLease(instance) {
      server.putLease(instance, Date.now() - 2 * dayMs);
    },
    async forceState(id, state) {
      edit(id, { state });
    },
    async block(id) {
      const row = server.rowAt(id) as Row;
      server.blocked.add(row.id);
      return async () => void server.blocked.delete(row.id);
    },
    countRecords: async () => server.rows.size,
    async clear() {
      server.rows.clear();
      server.instances.clear();
    },
  };
}

t.test('the contract', async (t) => contract(t, simHarness));
