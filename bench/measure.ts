import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type { Child } from './child.ts';
import type { Contender } from './contenders.ts';
import type { Done, Order } from './load.ts';
import { canMeasureProcesses, cpuOf } from './processes.ts';
import type { Started } from './start.ts';
import { readStoreCounters } from './store-counters.ts';
import { executionsOf } from './traffic.ts';

/** One turn of a contender. Times are µs of CPU per request; null: it has no such part, or it cannot be measured here. */
export interface Turn {
  readonly proxy: number | null;
  readonly postgres: number | null;
  readonly transactions: number | null;
  readonly walBytes: number | null;
  /** These depend on whatever else the machine does. */
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface Bench {
  readonly upstream: Child;
  readonly load: Child;
  readonly postmaster: number;
  readonly client: pg.Client;
}

/** Milliseconds for what was put off, as log lines are, to happen within the turn that caused it. */
const settleMs = 200;

export type Entrant = Pick<Contender, 'name' | 'label' | 'usesStore' | 'traffic'> & Started;

export async function takeTurn(
  bench: Bench,
  entrant: Pick<Entrant, 'traffic' | 'usesStore' | 'label'> & Started,
  { requests, connections }: { requests: number; connections: number },
): Promise<Turn> {
  const { port, traffic } = entrant;
  const before = await look(bench, entrant);
  const done = await send(bench, { port, requests, connections, traffic });
  await delay(settleMs);
  const after = await look(bench, entrant);
  const ran = after.executions - before.executions;
  const expected = executionsOf(traffic, done.steps);
  if (ran !== expected)
    throw new Error(
      `${entrant.label}: ${done.requests} requests ran ${ran} times, which should have been ${expected}`,
    );
  const each = (name: 'proxy' | 'postgres' | 'transactions' | 'walBytes'): number | null => {
    const [from, to] = [before[name], after[name]];
    return from === null || to === null ? null : (to - from) / done.requests;
  };
  return {
    proxy: each('proxy'),
    postgres: each('postgres'),
    transactions: each('transactions'),
    walBytes: each('walBytes'),
    requestsPerSecond: done.requests / done.seconds,
    p50Ms: done.p50Ms,
    p99Ms: done.p99Ms,
  };
}

export async function send(bench: Bench, order: Order): Promise<Done> {
  const answer = await bench.load.ask<{ done?: Done; failed?: string }>(order);
  if (answer.done === undefined) throw new Error(`the clients stopped: ${answer.failed}`);
  return answer.done;
}

async function look(
  { upstream, postmaster, client }: Bench,
  { child, service, usesStore }: Started & { usesStore: boolean },
) {
  const { executions } = await (service ?? upstream).ask<{ executions: number }>({});
  const store = usesStore ? await readStoreCounters(client) : { walBytes: null, transactions: null };
  return {
    executions,
    ...store,
    proxy: canMeasureProcesses && child !== null ? cpuOf(child.pid) : null,
    postgres: canMeasureProcesses && usesStore ? cpuOf(postmaster) : null,
  };
}
