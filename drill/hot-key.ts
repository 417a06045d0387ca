import { setTimeout as delay } from 'node:timers/promises';
import { startEmbedded } from '../src/store/postgres/embedded.ts';
import { ask } from '../test/helpers/client.ts';
import { query, serverDir, type Teardown } from '../test/helpers/postgres.ts';
import { type SidecarProcess, sidecarProcess } from '../test/helpers/sidecar.ts';
import { until } from '../test/helpers/until.ts';
import { Callers, type Told } from './callers.ts';
import type { Context, Drill, Outcome } from './drill.ts';
import { HoldingUpstream } from './holding-upstream.ts';
import { outcomeOf } from './hot-key-outcome.ts';
import { peakMb, residentMb } from './resident.ts';

const key = 'hot';
/** Milliseconds in which everybody waits and nothing else happens; `inFlight.wait` must be longer. */
const waitingMs = 4_000;
const config = `
upstream: { timeout: 2m }
defaults: { inFlight: { wait: 60s } }`;

export const hotKey: Drill = {
  name: 'hot-key',
  about: '10,000 callers with one key, on two sidecars',
  missing: () => (process.platform === 'linux' ? null : 'Linux: memory is read from /proc'),
  run,
};

async function run({ stage, options, say }: Context): Promise<Outcome> {
  const count = options.isShort ? 3_000 : 10_000;
  const databaseUrl = await countingDatabase(stage);
  const upstream = await HoldingUpstream.start(stage);
  const start = () => sidecarProcess(stage, { upstream: upstream.url, databaseUrl, config });
  const sidecars = await Promise.all([start(), start()]);
  const pids = sidecars.map(({ child }) => child.pid ?? 0);
  const beforeMb = pids.map(residentMb);
  say(`Opening ${count} connections …`);
  const urls = sidecars.map(({ dataUrl }) => dataUrl);
  const callers = await Callers.open(stage, urls, count);

  upstream.hold(key);
  const arriving = await counter(databaseUrl);
  const told: Told[] = [];
  const calls = callers.send(key).map(async (call) => void told.push(await call));
  const answer = await upstream.held(key);
  await untilQuiet(told, urls);
  const arrived = await arriving();
  const waiting = count - told.length;
  say(`${told.length} were told to come back, ${waiting} wait …`);

  const waitingOn = await counter(databaseUrl);
  await delay(waitingMs);
  const waited = await waitingOn();
  answer();
  await Promise.all(calls);
  say('Everybody asks once more …');
  const again = await Promise.all(callers.send(key));
  const growthMb = pids.map((pid, i) => peakMb(pid) - (beforeMb[i] ?? 0));
  const starts = upstream.startsOf(key).length;
  const reasons = await reasonsOf(sidecars, 2 * count);
  return outcomeOf({ first: told, again, starts, waiting, waited, arrived, beforeMb, growthMb, reasons });
}

/** Statements are counted by PostgreSQL itself, each when it has ended. */
async function countingDatabase(t: Teardown): Promise<string> {
  const settings = { shared_preload_libraries: 'pg_stat_statements' };
  const server = await startEmbedded({ dataDir: serverDir(t), settings, log: () => {} });
  t.teardown(() => server.stop());
  await query(server.url, 'CREATE EXTENSION pg_stat_statements');
  return server.url;
}

export interface Counted {
  readonly statements: number;
  readonly ms: number;
}

/** From now on, until it is asked: all statements of both sidecars, those of their lease and sweeper too. */
async function counter(databaseUrl: string): Promise<() => Promise<Counted>> {
  const look = async (): Promise<number> => {
    const [row] = await query(
      databaseUrl,
      `SELECT coalesce(sum(calls), 0)::int AS n
FROM pg_stat_statements
WHERE query NOT LIKE '%pg_stat_statements%'`,
    );
    return row?.['n'] as number;
  };
  const from = { statements: await look(), ms: performance.now() };
  return async () => ({
    statements: (await look()) - from.statements,
    ms: performance.now() - from.ms,
  });
}

/** Milliseconds without a further answer: all are decided, and whoever has none waits. */
const quietMs = 1_500;

async function untilQuiet(told: readonly Told[], urls: readonly string[]): Promise<void> {
  for (let before = -1; before !== told.length; ) {
    before = told.length;
    await delay(quietMs);
    // A sidecar that is still busy with the crowd answers nobody, and this only after it.
    await Promise.all(urls.map((url) => ask(url, { method: 'GET' })));
  }
}

/** What the sidecars themselves gave as reasons for a refusal. */
async function reasonsOf(
  sidecars: readonly SidecarProcess[],
  requests: number,
): Promise<Record<string, number>> {
  const lines = () => sidecars.flatMap((sidecar) => sidecar.lines);
  await until('all of their log', () => lines().length >= requests);
  const counts: Record<string, number> = {};
  for (const line of lines()) {
    const { error } = JSON.parse(line) as { error?: string };
    if (error !== undefined) counts[error] = (counts[error] ?? 0) + 1;
  }
  return counts;
}
