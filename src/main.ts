import type { FastifyInstance } from 'fastify';
import type { Config } from './config/config.ts';
import { routeLines } from './config/describe.ts';
import { createMemos } from './core/memos.ts';
import type { Policies } from './core/routes.ts';
import { exposureWarnings } from './doctor/judge-exposure.ts';
import { judgeStandbys } from './doctor/judge-server.ts';
import { asError } from './errors.ts';
import { assertFree, listen } from './listen.ts';
import { countOnce } from './loops/census.ts';
import { renewalsPerLease, renewOnce } from './loops/lease-keeper.ts';
import { Loop } from './loops/loop.ts';
import { reapLimit, reapOnce } from './loops/reaper.ts';
import { Sweeper, sweepLimit } from './loops/sweeper.ts';
import { heldLimitOf, memoryShare, requestLimitOf } from './memory.ts';
import { Readiness } from './ops/readiness.ts';
import { createOpsServer } from './ops/server.ts';
import { Attempts } from './proxy/attempts.ts';
import { Budget } from './proxy/budget.ts';
import type { ProxyDeps } from './proxy/deps.ts';
import { ReplayCache } from './proxy/replay-cache.ts';
import { createProxyServer } from './proxy/server.ts';
import { Waiters } from './proxy/waiters.ts';
import { Lease } from './store/lease.ts';
import { openStore, type StoreTarget, whenReachable } from './store/postgres/open.ts';
import { type Logger, logEvents } from './telemetry/logger.ts';
import { createMetrics, type Metrics } from './telemetry/metrics.ts';
import { Clients } from './upstream/clients.ts';

export interface StartOptions {
  readonly config: Config;
  readonly policies: Policies;
  readonly storeTarget: StoreTarget;
  readonly log: Logger;
  /** One of several processes behind the same ports, by its number: its ops port is that of the first process. */
  readonly worker?: string;
  /** Ends the wait for a store that is not there yet. */
  readonly signal?: AbortSignal;
}

export interface Running {
  readonly dataUrl: string;
  /** Empty in a worker. */
  readonly opsUrl: string;
  /** What the ops port says. */
  readonly health: {
    readonly notReady: () => Promise<string | null>;
    readonly metrics: Pick<Metrics, 'contentType' | 'text' | 'json'>;
  };
  /** Answers what runs, closes the store last. `hurry` skips the delay meant for load balancers. May be called twice. */
  readonly drain: (hurry: boolean) => Promise<void>;
}

const maxReplayBytes = 16 * 1_048_576;
/** Milliseconds after a failed pass. */
const retryMs = 1_000;
/** Milliseconds at the end of a drain for the store to take what is still unsettled. */
const lastSettleMs = 5_000;
/** Milliseconds after that for all else that the store is told; then it is cut. docs/deploy.md and the chart count on the sum. */
const lastWordsMs = 5_000;

/** Wiring only: config → store → servers → loops; `drain` takes it apart in the opposite order. */
export async function start(options: StartOptions): Promise<Running> {
  const { config, policies, storeTarget, log, worker = null, signal } = options;
  // A worker's were told by the first process.
  if (worker === null) for (const warning of config.warnings) log.warn(warning);
  if (worker === null) await assertFree(config.listen);
  const stopLogging = logEvents(log, (method, path) => policies.policyFor(method, path).route);
  const watching = { log: (line: string) => log.info(line), signal };
  const opened = await openStore(storeTarget, config.identity, watching);
  for (const warning of opened.warnings) log.warn(warning);
  const standbys = judgeStandbys(opened.durability);
  if (standbys.level === 'warning') log.warn(`the store has ${standbys.text}; ${standbys.advice}`);
  if (worker === null) for (const warning of exposureWarnings(config)) log.warn(warning);
  const { store } = opened;
  const lease = new Lease(store, config.leaseMs);
  const attempts = new Attempts();
  const clients = new Clients({
    onSinkError: (error) => log.error({ error: error.message }, 'answer not taken'),
  });
  const shareBytes = memoryShare(config.workers);
  const heldLimitBytes = heldLimitOf(shareBytes);
  const budget = new Budget(heldLimitBytes);
  // Once is enough, also where the first process of several holds no requests.
  if (worker === null || worker === '1') warnOfLarge(policies, budget, log);
  const deps: ProxyDeps = {
    identity: config,
    memos: createMemos(),
    policies,
    store,
    lease,
    attempts,
    waiters: new Waiters(store),
    budget,
    replays: new ReplayCache(maxReplayBytes),
    clientFor: clients.for,
  };
  const gauges = {
    attempts: () => attempts.size,
    unsettled: () => store.unsettled,
    refusing: () => store.isRefusing,
    heldBytes: () => budget.heldBytes,
    heldLimitBytes: () => heldLimitBytes,
  };
  const metrics = createMetrics(gauges, worker);
  let draining = false;
  const readiness = new Readiness({
    notServing: () => (draining ? 'draining' : lease.current() === null ? 'no lease' : null),
    checkStore: () => store.check(),
  });
  // Nothing listens before the start is over.
  const health = { notStarted: () => null, notReady: () => readiness.notReady(), metrics };
  const ops = createOpsServer(health);
  const { app: data, cut } = await createProxyServer(deps, new Budget(requestLimitOf(shareBytes)));
  const sweeper = new Sweeper({ store, lease, unsent: attempts.unsent, nowMs: () => performance.now() });
  const loops: Loop[] = [];

  const takeApart = async () => {
    await data.close();
    // What is under way or still to be sent then fails at once, however the store hangs.
    const cutAtMs = performance.now() + lastWordsMs;
    const cutStore = setTimeout(() => void store.close(0), lastWordsMs);
    await Promise.all(loops.map((loop) => loop.stop()));
    await clients.destroy();
    // While our lease lives: once it is over, others would call unknown what only we know was never sent.
    await sweeper.releaseUnsent(AbortSignal.timeout(lastWordsMs)).catch(() => {});
    await lease.close().catch((error) => log.warn({ error: asError(error).message }, 'lease not closed'));
    clearTimeout(cutStore);
    await store.close(Math.max(0, cutAtMs - performance.now()));
    await opened.stop();
    await ops.close();
    metrics.end();
    stopLogging();
  };

  try {
    // PostgreSQL may go away again just now.
    await whenReachable(watching, () => renewOnce({ lease }));
    const opsUrl = worker === null ? await listen(ops, config.listen.ops, 'ops') : '';
    const dataUrl = await listen(data, config.listen.data, 'data');
    loops.push(...startLoops(config, deps, sweeper));
    const routes = routeLines(config, policies.defaults.upstream.origin);
    const { description, version: schema } = opened;
    if (worker === null)
      log.info({ data: dataUrl, ops: opsUrl, store: description, schema, routes }, 'serving');
    else log.info({ worker, pid: process.pid, store: description, schema }, 'worker serving');
    let drained: Promise<void> | null = null;
    const drain = async (hurry: boolean) => {
      draining = true;
      if (!hurry) await new Promise((resolve) => setTimeout(resolve, config.drain.delayMs));
      await finish({ data, cut, attempts, clients, maxMs: config.drain.maxMs });
      await takeApart();
    };
    return { dataUrl, opsUrl, health, drain: (hurry) => (drained ??= drain(hurry)) };
  } catch (error) {
    await takeApart();
    throw error;
  }
}

/** A body that one address never has room for would get 503 each time, and a retry would not help. */
function warnOfLarge(policies: Policies, budget: Budget, log: Logger): void {
  const maxBytes = Math.max(...policies.all.map((policy) => policy.maxRequestBodyBytes));
  if (maxBytes <= budget.largestBytes) return;
  const mb = (bytes: number): string => `${Math.floor(bytes / 1_048_576)} MB`;
  log.warn(
    `maxRequestBody allows ${mb(maxBytes)}, but this process takes no body over ${mb(budget.largestBytes)} with the memory it may use; larger ones get 503 overloaded: give the container more, or lower maxRequestBody`,
  );
}

interface Finishing {
  readonly data: FastifyInstance;
  readonly cut: () => void;
  readonly attempts: Attempts;
  readonly clients: Clients;
  readonly maxMs: number;
}

/** Stops accepting; what runs is answered; past `maxMs` it is cut, and its record settled as unknown. */
async function finish({ data, cut, attempts, clients, maxMs }: Finishing): Promise<void> {
  // In this order: a request that is still being read has no attempt yet, and its client may leave.
  const answered = data.close().then(() => attempts.idle());
  const timer = setTimeout(() => {
    void clients.destroy();
    cut();
  }, maxMs);
  // What the store has not settled even then is left to the sweeper of another instance.
  const atLast = setTimeout(() => attempts.abandon(), maxMs + lastSettleMs);
  await answered;
  clearTimeout(timer);
  clearTimeout(atLast);
}

function startLoops(config: Config, { store, lease }: ProxyDeps, sweeper: Sweeper): Loop[] {
  const renewMs = config.leaseMs / renewalsPerLease;
  return [
    new Loop({
      name: 'lease',
      everyMs: renewMs,
      firstMs: renewMs,
      retryMs: Math.min(retryMs, renewMs),
      runOnce: () => renewOnce({ lease }),
    }),
    new Loop({
      name: 'sweeper',
      everyMs: config.loops.sweepMs,
      retryMs,
      runOnce: (signal) => sweeper.runOnce(signal),
      hasMore: (counts) => counts['swept'] === sweepLimit,
    }),
    new Loop({
      name: 'reaper',
      everyMs: config.loops.reapMs,
      retryMs,
      runOnce: () => reapOnce({ store }),
      hasMore: (counts) => counts['reaped'] === reapLimit,
    }),
    new Loop({
      name: 'census',
      everyMs: config.loops.sweepMs,
      retryMs,
      runOnce: () => countOnce({ store }),
    }),
  ].map((loop) => loop.start());
}
