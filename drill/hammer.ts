import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Child, startChild } from '../bench/child.ts';
import { canMeasureProcesses, cpuOf } from '../bench/processes.ts';
import { startEmbedded } from '../src/store/postgres/embedded.ts';
import { serverDir } from '../test/helpers/postgres.ts';
import { countRecords } from '../test/helpers/records.ts';
import { type SidecarProcess, sidecarProcess } from '../test/helpers/sidecar.ts';
import type { Context, Drill, Outcome } from './drill.ts';
import type { Order } from './hammer-load.ts';
import { outcomeOf } from './hammer-outcome.ts';
import type { Hammered } from './hammer-tally.ts';
import type { Ran } from './hammer-upstream.ts';
import type { Stage } from './stage.ts';
import { untilSettled } from './verify.ts';

const replicas = 3;
/** Nearly all of them wait for another replica's answer: this many keep the machine busy. */
const connectionsEach = 80;
const leaseMs = 60_000;
const sweepMs = 15_000;
const config = `
lease: ${leaseMs}ms
loops: { sweep: ${sweepMs}ms }`;

const lookEveryMs = 500;
const saySeconds = 5;
/** Milliseconds without one more call that ended: then something hangs. */
const silenceMs = 60_000;

export const hammer: Drill = {
  name: 'hammer',
  about: 'bursts of duplicates race for their keys on three sidecars (1,000,000 requests)',
  missing: () => (canMeasureProcesses ? null : 'Linux: processor time is read from /proc'),
  run,
};

async function run({ stage, options, say }: Context): Promise<Outcome> {
  const requests = options.requests ?? (options.isShort ? 20_000 : 1_000_000);
  const server = await startEmbedded({ dataDir: serverDir(stage), log: () => {} });
  stage.teardown(() => server.stop());
  const upstream = startPart(stage, 'hammer-upstream', options.seed);
  const { url } = await upstream.told<{ url: string }>();
  const start = () =>
    sidecarProcess(stage, { upstream: url, databaseUrl: server.url, config, log: 'dropped' });
  const sidecars = await Promise.all(Array.from({ length: replicas }, start));
  const load = startPart(stage, 'hammer-load', options.seed);

  const look = () => ({
    sidecars: sidecars.reduce((sum, { child }) => sum + cpuOf(child.pid ?? 0), 0),
    postgres: cpuOf(server.pid),
    upstream: cpuOf(upstream.pid),
    load: cpuOf(load.pid),
  });
  const before = look();
  const urls = sidecars.map(({ dataUrl }) => dataUrl);
  const hammered = await finish(load, { urls, requests, seed: options.seed, connectionsEach }, say);
  const after = look();
  const each = (part: keyof typeof before): number => (after[part] - before[part]) / hammered.calls;
  const cpu = {
    sidecars: each('sidecars'),
    postgres: each('postgres'),
    upstream: each('upstream'),
    load: each('load'),
  };
  const verdicts = await verdictsOf(sidecars);
  const count = () => countRecords(server.url, `state = 'in_progress'`);
  const inProgress = await untilSettled({ leaseMs, sweepMs }, count);
  const unfinished = await countRecords(server.url, `state <> 'completed'`);
  const ran = await upstream.ask<Ran>({});
  return outcomeOf({ hammered, ran, cpu, verdicts, inProgress, unfinished });
}

/** A file of this folder, in a process of its own. */
function startPart(stage: Stage, name: string, seed: number): Child {
  const dir = mkdtempSync(join(tmpdir(), 'oncegate-drill-'));
  const file = join(import.meta.dirname, `${name}.ts`);
  const child = startChild(['--import=tsx', file, String(seed)], join(dir, 'log'));
  stage.teardown(async () => {
    await child.stop();
    rmSync(dir, { recursive: true });
  });
  return child;
}

async function finish(load: Child, order: Order, say: (line: string) => void): Promise<Hammered> {
  let state = await load.ask<Hammered>(order);
  for (let aliveMs = performance.now(); !state.isDone; ) {
    await delay(lookEveryMs);
    const { calls, seconds } = state;
    state = await load.ask<Hammered>({});
    if (state.error !== null) throw new Error(state.error);
    if (state.calls > calls) aliveMs = performance.now();
    if (performance.now() - aliveMs > silenceMs) throw new Error(`no call ended for ${silenceMs / 1_000} s`);
    if (Math.floor(seconds / saySeconds) < Math.floor(state.seconds / saySeconds))
      say(progress(state, order.requests));
  }
  return state;
}

function progress({ calls, seconds, keys, refusals, unlike }: Hammered, requests: number): string {
  const refused = Object.values(refusals).reduce((sum, n) => sum + n, 0);
  return (
    `${seconds.toFixed(0)} s: ${calls} of ${requests} calls, ${Math.round(calls / seconds)}/s; ` +
    `${keys} keys, ${refused} refusals, ${unlike.length} unlike`
  );
}

/** What the sidecars themselves say that they did, by verdict. */
async function verdictsOf(sidecars: readonly SidecarProcess[]): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { opsUrl } of sidecars) {
    const text = await (await fetch(`${opsUrl}/metrics`)).text();
    for (const [, verdict = '', n] of text.matchAll(
      /^oncegate_requests_total\{.*verdict="(\w+)".*\} (\d+)$/gm,
    ))
      counts[verdict] = (counts[verdict] ?? 0) + Number(n);
  }
  return counts;
}
