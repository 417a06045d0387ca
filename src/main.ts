import type { Config } from './config/config.ts';
import { routeLines } from './config/describe.ts';
import type { Policies } from './core/routes.ts';
import { exposureWarnings } from './doctor/judge-exposure.ts';
import { judgeStandbys } from './doctor/judge-server.ts';
import { drain, takeApart } from './drain.ts';
import { assemble } from './instance.ts';
import { assertFree, listen } from './listen.ts';
import { heldLimitOf, memoryShare, requestLimitOf } from './memory.ts';
import { Readiness } from './ops/readiness.ts';
import { createOpsServer } from './ops/server.ts';
import { Budget } from './proxy/budget.ts';
import { createProxyServer } from './proxy/server.ts';
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

/** Wiring only: config → store → instance → servers → loops. */
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
  const clients = new Clients({
    onSinkError: (error) => log.error({ error: error.message }, 'answer not taken'),
  });
  const shareBytes = memoryShare(config.workers);
  const heldLimitBytes = heldLimitOf(shareBytes);
  const instance = assemble({ config, policies, store, clients, heldLimitBytes });
  const { lease, attempts, budget } = instance.deps;
  // Once is enough, also where the first process of several holds no requests.
  if (worker === null || worker === '1') warnOfLarge(policies, budget, log);
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
  const heads = new Budget(requestLimitOf(shareBytes));
  const { app: data, cut } = await createProxyServer(instance.deps, heads);
  const parts = {
    instance,
    data: { close: () => data.close(), cut },
    onLeaseNotClosed: ({ message }: Error) => log.warn({ error: message }, 'lease not closed'),
  };
  const closeTheRest = async () => {
    await opened.stop();
    await ops.close();
    metrics.end();
    stopLogging();
  };

  try {
    // PostgreSQL may go away again just now.
    await whenReachable(watching, instance.openLease);
    const opsUrl = worker === null ? await listen(ops, config.listen.ops, 'ops') : '';
    const dataUrl = await listen(data, config.listen.data, 'data');
    instance.startLoops();
    const routes = routeLines(config, policies.defaults.upstream.origin);
    const { description, version: schema } = opened;
    if (worker === null)
      log.info({ data: dataUrl, ops: opsUrl, store: description, schema, routes }, 'serving');
    else log.info({ worker, pid: process.pid, store: description, schema }, 'worker serving');
    let drained: Promise<void> | null = null;
    const end = async (hurry: boolean) => {
      draining = true;
      if (!hurry) await new Promise((resolve) => setTimeout(resolve, config.drain.delayMs));
      await drain(parts, config.drain.maxMs);
      await closeTheRest();
    };
    return { dataUrl, opsUrl, health, drain: (hurry) => (drained ??= end(hurry)) };
  } catch (error) {
    await takeApart(parts);
    await closeTheRest();
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
