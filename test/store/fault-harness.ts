import type { Test } from 'tap';
import type { PostgresStore } from '../../src/store/postgres/postgres.ts';
import { serverMessage, type TcpProxy, type Trap, tcpProxy } from '../helpers/tcp-proxy.ts';
import { type PostgresHarness, postgresHarness } from './postgres-harness.ts';
import { reservation } from './samples.ts';

/** What only this statement has on the wire: a part of its text, which is sent each time while the table is small. */
const texts = {
  reserve: 'INSERT INTO oncegate.record (',
  takeOver: "epoch = nextval('oncegate.epoch')",
  settle: 'status = item.status',
  confirm: 'SET attempt = record.attempt',
  read: 'octet_length(record.body) <=',
  sweep: 'last_error = item.reason',
  reap: 'DELETE FROM oncegate.record',
} as const;

type Sent = keyof typeof texts;

export interface Faults extends PostgresHarness {
  readonly proxy: TcpProxy;
  /** Goes through the proxy; what the other two do arrives always. */
  readonly shaky: PostgresStore;
  /** How many of each statement have left, or tried to. */
  readonly sent: Record<Sent, number>;
  /** The statement never reaches the server. */
  loseStatement(which: Sent): Trap;
  /** The statement is carried out and committed; its answer never arrives. By the command tag. */
  loseAnswer(tag: 'INSERT' | 'UPDATE' | 'SELECT'): Trap;
  /** On its way until `release()`, which may be long after its sender has given up. */
  delayStatement(which: Sent): Trap;
  /** Lets a delayed statement arrive whose sender has closed its connection, and waits for the server to be done with it. */
  deliver(ghost: Trap): Promise<void>;
  /** Connections are there and nothing has been counted. */
  reset(): Promise<void>;
}

/** Short enough for tests, long enough for a slow machine; connecting is left as it is. */
const timeouts = { reserveMs: 1_000, settleMs: 1_000, leaseMs: 1_000, loopMs: 1_000, queueMs: 500 };

export async function faultHarness(t: Test): Promise<Faults> {
  const harness = await postgresHarness(t);
  const { hostname, port } = new URL(harness.url);
  const proxy = await tcpProxy(t, { host: hostname, port: Number(port) });
  const shaky = harness.another({ url: proxy.through(harness.url), timeouts });
  const sent = Object.fromEntries(Object.keys(texts).map((which) => [which, 0])) as Record<Sent, number>;
  // Never matches: it only looks at what passes.
  const count = (chunk: Buffer): boolean => {
    for (const [which, text] of Object.entries(texts)) if (chunk.includes(text)) sent[which as Sent] += 1;
    return false;
  };
  proxy.onceClientSends(count, 'hold');
  return {
    ...harness,
    proxy,
    shaky,
    sent,
    loseStatement: (which) => proxy.onceClientSends(texts[which], 'cut-before'),
    loseAnswer: (tag) => proxy.onceServerSends(serverMessage('C', tag), 'cut-before'),
    delayStatement: (which) => proxy.onceClientSends(texts[which], 'hold'),
    async deliver(ghost) {
      const { open } = proxy.counts();
      ghost.release();
      await until(() => proxy.counts().open < open);
    },
    async reset() {
      // The question asked of each new connection is a SELECT too: it must not fall into a trap.
      const { scope, key } = reservation();
      const wanted = { scope, key, attempt: reservation().attempt };
      await Promise.all([shaky.check(), shaky.check()]);
      await Promise.all([
        shaky.markUnknownIfHeld({ ...wanted, status: null, error: '' }),
        shaky.renewLease(wanted.attempt, 1),
      ]);
      // What the test before has broken counts for nothing in this one.
      await until(async () => (await shaky.reserve(reservation())).kind === 'reserved');
      for (const which of Object.keys(sent)) sent[which as Sent] = 0;
    },
  };
}

export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 5));
}
