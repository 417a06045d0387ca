import { type DestinationStream, type Logger, pino, symbols } from 'pino';
import { hashOf, type RecordId } from '../core/record.ts';
import {
  answerRefused,
  leaseOpened,
  loopDone,
  passDone,
  type RequestDone,
  recordSwept,
  requestDone,
} from '../events.ts';
import { LogOutput } from './log-output.ts';

export type { Logger };

/** A pipe takes so many bytes in one piece: what several processes write into it is not mixed up. */
const pipeBytes = 4_096;

/** For standard output that several processes share. */
export const sharedOutput = (): DestinationStream => new LogOutput(1, pipeBytes);

/** Lines are written in the background, in order; `flush` before the process ends. */
export function createLogger(level: string, to: DestinationStream = new LogOutput(1)): Logger {
  const log = pino({ level, base: null, timestamp }, to);
  if (to instanceof LogOutput)
    to.onFlow = (dropped) => log.warn({ dropped }, 'log lines were dropped, because nobody read them');
  return log;
}

let stampedMs = 0;
let stamp = '';

/** Spelled once a millisecond, however many lines that has. */
function timestamp(): string {
  const nowMs = Date.now();
  if (nowMs !== stampedMs) {
    stampedMs = nowMs;
    stamp = `,"time":"${new Date(nowMs).toISOString()}"`;
  }
  return stamp;
}

/** Enough to find a record's lines again, and the record itself with `oncegate keys show`; never the key. */
function keyHash(id: RecordId | null): string | undefined {
  return id === null ? undefined : hashOf(id).slice(0, 16);
}

const rounded = (ms: number | null): number | undefined =>
  ms === null ? undefined : Math.round(ms * 100) / 100;

/** As JSON; a route is a pattern of the config, so there are few. */
const spelledRoutes = new Map<string, string>();

function spelledRoute(route: string): string {
  let spelled = spelledRoutes.get(route);
  if (spelled === undefined) {
    spelled = JSON.stringify(route);
    spelledRoutes.set(route, spelled);
  }
  return spelled;
}

/**
 * The line of a request without fault, as pino would spell it: at a third of the cost, for nothing in it needs escaping. Request ids
 * are letters, digits and a few marks (proxy/server.ts), methods are Node's, the rest are our own words.
 */
function requestLine(done: RequestDone, level: number, instance: string | undefined): string {
  const { outcome, id, reserveMs, forwardMs, completeMs } = done;
  let line = `{"level":${level}${timestamp()}`;
  if (instance !== undefined) line += `,"instance":"${instance}"`;
  line += `,"requestId":"${done.requestId}","method":"${done.method}"`;
  line += `,"route":${spelledRoute(done.route)},"status":${done.status},"verdict":"${done.verdict}"`;
  if (outcome !== null) line += `,"outcome":"${outcome}"`;
  if (id !== null) line += `,"keyHash":"${keyHash(id)}"`;
  line += `,"ms":${rounded(done.totalMs)}`;
  if (reserveMs !== null) line += `,"reserveMs":${rounded(reserveMs)}`;
  if (forwardMs !== null) line += `,"forwardMs":${rounded(forwardMs)}`;
  if (completeMs !== null) line += `,"completeMs":${rounded(completeMs)}`;
  return `${line},"msg":"request"}\n`;
}

/**
 * One line per request, per failed pass, per swept record, each with the instance that is meant: by it a line is joined with its
 * record. Gives back what ends it.
 */
export function logEvents(log: Logger, routeOf: (method: string, path: string) => string): () => void {
  const output = (log as unknown as { readonly [symbols.streamSym]: DestinationStream })[symbols.streamSym];
  /** The id under which this process works now; undefined before its first lease. */
  let current: string | undefined;
  const ends = [
    requestDone.subscribe((done) => {
      const { requestId, method, route, status, verdict, outcome, error } = done;
      if (error === null) {
        const level = outcome === 'unknown' ? 'warn' : 'info';
        if (log.isLevelEnabled(level))
          output.write(requestLine(done, log.levels.values[level] as number, done.instance ?? current));
        return;
      }
      const line = {
        instance: done.instance ?? current,
        requestId,
        method,
        route,
        status,
        verdict,
        outcome: outcome ?? undefined,
        keyHash: keyHash(done.id),
        ms: rounded(done.totalMs),
        reserveMs: rounded(done.reserveMs),
        forwardMs: rounded(done.forwardMs),
        completeMs: rounded(done.completeMs),
        error: error.message,
      };
      log.warn(line, 'request');
    }),
    passDone.subscribe(({ requestId, method, route, status, totalMs }) => {
      log.info(
        {
          instance: current,
          requestId,
          method,
          route,
          status,
          verdict: 'pass_through',
          ms: rounded(totalMs),
        },
        'request',
      );
    }),
    recordSwept.subscribe(({ instance, attempt, method, path, requestId, reason, to, ...id }) => {
      const route = routeOf(method, path);
      const line = { instance, attempt, method, path, route, requestId, reason, keyHash: keyHash(id) };
      log.warn(line, to === 'unknown' ? 'record swept to unknown' : 'record released, for it was never sent');
    }),
    answerRefused.subscribe(({ id, ...refused }) => {
      log.error({ ...refused, keyHash: keyHash(id) }, 'late answer refused');
    }),
    leaseOpened.subscribe(({ instance }) => {
      current = instance;
      log.info({ instance }, 'lease opened');
    }),
    loopDone.subscribe(({ loop, counts, ms, error }) => {
      const line = { instance: current, loop, ms: rounded(ms) };
      if (error !== null) log.warn({ ...line, error: error.message }, 'pass failed');
      else log.debug({ ...line, counts }, 'pass done');
    }),
  ];
  return () => {
    for (const end of ends) end();
  };
}
