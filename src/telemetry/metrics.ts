import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { answerRefused, leaseOpened, logLineDropped, loopDone, passDone, requestDone } from '../events.ts';
import { censusGauges } from './census-gauges.ts';
import { GatheredDurations, GatheredRequests } from './gathered.ts';

export type MetricsJson = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

export const metricsContentType: string = Registry.PROMETHEUS_CONTENT_TYPE;

/** Those of several workers. Each has its own series: a sum of all would jump whenever one is replaced and counts from 0. */
export async function mergeMetrics(all: readonly MetricsJson[]): Promise<string> {
  return await AggregatorRegistry.aggregate([...all]).metrics();
}

export interface Metrics {
  readonly contentType: string;
  readonly text: () => Promise<string>;
  readonly json: () => Promise<MetricsJson>;
  readonly end: () => void;
}

export interface Gauges {
  readonly attempts: () => number;
  readonly unsettled: () => number;
  readonly refusing: () => boolean;
  readonly heldBytes: () => number;
  readonly heldLimitBytes: () => number;
}

/** Seconds: from a cached look-up to the longest upstream. */
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** Prometheus text, in the words of the docs. No tenant and no key is ever a label; a route is a pattern of the config. */
export function createMetrics(gauges: Gauges, worker: string | null): Metrics {
  const registry = new Registry();
  if (worker !== null) registry.setDefaultLabels({ worker });
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const counter = <L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Counter({ name, help, labelNames, registers });
  const durations = (name: string, help: string) =>
    new GatheredDurations(new Histogram({ name, help, buckets, registers }));

  const requests = new GatheredRequests(
    counter(
      'oncegate_requests_total',
      'Guarded requests by verdict and outcome.',
      'route',
      'verdict',
      'outcome',
    ),
  );
  const passed = counter('oncegate_pass_through_total', 'Requests passed through.', 'route', 'class');
  const total = durations(
    'oncegate_request_seconds',
    'Guarded requests, from the head to the last byte handed over.',
  );
  const reserve = durations(
    'oncegate_reserve_seconds',
    'Reserving the key, or reading the record that has it.',
  );
  const forward = durations('oncegate_forward_seconds', 'The upstream, from queueing to the last byte.');
  const complete = durations('oncegate_complete_seconds', 'Settling the record.');
  const passes = counter('oncegate_loop_passes_total', 'Passes of the loops.', 'loop', 'result');
  const handled = counter('oncegate_loop_records_total', 'Records that a loop acted on.', 'loop', 'action');
  const refused = counter(
    'oncegate_answers_refused_total',
    'Answers that came after another attempt had taken the key.',
  );
  const leases = counter(
    'oncegate_leases_opened_total',
    'Leases opened; more than one means that one lapsed.',
  );
  const droppedLines = counter(
    'oncegate_log_lines_dropped_total',
    'Log lines that were dropped because nobody read them.',
  );
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  gauge(
    'oncegate_attempts_in_progress',
    'Attempts of this instance that the store has not settled yet.',
    gauges.attempts,
  );
  gauge(
    'oncegate_store_refusing',
    '1 while the store does not answer and reservations are refused at once.',
    () => Number(gauges.refusing()),
  );
  gauge('oncegate_answers_unsaved', 'Settlements that wait for the store.', gauges.unsettled);
  gauge(
    'oncegate_held_bytes',
    'Bytes of request and answer bodies in memory; new requests get 503 overloaded from three quarters of the limit on.',
    gauges.heldBytes,
  );
  gauge(
    'oncegate_held_bytes_limit',
    'Bytes that may be held: 256 MB, or a quarter of the memory that the container allows the process.',
    gauges.heldLimitBytes,
  );

  const tell = () => {
    for (const gathered of [requests, total, reserve, forward, complete]) gathered.tell();
  };
  const ends = [
    requestDone.subscribe((done) => {
      requests.add(done.route, done.verdict, done.outcome ?? 'none');
      total.add(done.totalMs);
      reserve.add(done.reserveMs);
      forward.add(done.forwardMs);
      complete.add(done.completeMs);
    }),
    passDone.subscribe(({ route, status }) => passed.inc({ route, class: `${Math.floor(status / 100)}xx` })),
    loopDone.subscribe(({ loop, counts, error }) => {
      passes.inc({ loop, result: error === null ? 'ok' : 'failed' });
      for (const [action, count] of Object.entries(counts)) handled.inc({ loop, action }, count);
    }),
    answerRefused.subscribe(() => refused.inc()),
    leaseOpened.subscribe(() => leases.inc()),
    logLineDropped.subscribe(() => droppedLines.inc()),
    censusGauges(registry),
  ];
  const end = () => {
    for (const unsubscribe of ends) unsubscribe();
  };
  return {
    contentType: metricsContentType,
    text: () => {
      tell();
      return registry.metrics();
    },
    json: () => {
      tell();
      return registry.getMetricsAsJSON();
    },
    end,
  };
}
