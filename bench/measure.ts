import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type { Child } from './child.ts';
import type { Contender, Started } from './contenders.ts';
import { canMeasureCpu, cpuOf, cpuOfPostgres } from './cpu-time.ts';
import type { Done, Order } from './load.ts';
import { readStoreCounters } from './store-counters.ts';

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

export type Entrant = Contender & Started;

export async function takeTurn(
  bench: Bench,
  entrant: Entrant,
  { requests, connections }: { requests: number; connections: number },
): Promise<Turn> {
  const before = await look(bench, entrant);
  const { port, keys, expect } = entrant;
  const done = await send(bench, { port, requests, connections, keys, expect });
  await delay(settleMs);
  const after = await look(bench, entrant);
  const ran = after.executions - before.executions;
  if (ran !== requests * entrant.executions)
    throw new Error(`${entrant.name}: the upstream ran ${ran} times for ${requests} requests`);
  const each = (name: 'proxy' | 'postgres' | 'transactions' | 'walBytes'): number | null => {
    const [from, to] = [before[name], after[name]];
    return from === null || to === null ? null : (to - from) / requests;
  };
  return {
    proxy: each('proxy'),
    postgres: each('postgres'),
    transactions: each('transactions'),
    walBytes: each('walBytes'),
    requestsPerSecond: requests / done.seconds,
    p50Ms: done.p50Ms,
    p99Ms: done.p99Ms,
  };
}

export async function send(bench: Bench, order: Order): Promise<Done> {
  const answer = await bench.load.ask<{ done?: Done; failed?: string }>(order);
  if (answer.done === undefined) throw new Error(`the clients stopped: ${answer.failed}`);
  return answer.done;
}

async function look({ upstream, postmaster, client }: Bench, { child, usesStore }: Entrant) {
  const { executions } = await upstream.ask<{ executions: number }>({});
  const store = usesStore ? await readStoreCounters(client) : { walBytes: null, transactions: null };
  return {
    executions,
    ...store,
    proxy: canMeasureCpu && child !== null ? cpuOf(child.pid) : null,
    postgres: canMeasureCpu && usesStore ? cpuOfPostgres(postmaster) : null,
  };
}
