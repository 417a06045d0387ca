/**
 * `npm run bench`: what a guarded request costs beside other ways to do it, and beside doing nothing. Starts all it needs
 * and stops it again. The figure is CPU time per request: unlike seconds it hardly depends on what else runs.
 */
import { build } from './build.ts';
import { type Contender, contenders } from './contenders.ts';
import { describeRun } from './describe-run.ts';
import { goalTableOf, judge } from './goals.ts';
import { guard } from './guard.ts';
import { measureLatency } from './latency.ts';
import { onStage } from './main.ts';
import type { Bench } from './measure.ts';
import { idleMemory, memoryUnderCrowd } from './memory.ts';
import { type Options, parseOptions, UsageError, usage } from './options.ts';
import { canMeasureProcesses } from './processes.ts';
import { costTableOf, type Findings, paceTableOf } from './report.ts';
import { type Admitted, admit, playRounds } from './rounds.ts';
import { save } from './save.ts';
import { say } from './say.ts';
import type { Stage } from './stage.ts';
import { startOncegate } from './start.ts';

async function run(options: Options, stage: Stage): Promise<number> {
  const chosen = choose(options.only);
  build();
  if (!canMeasureProcesses)
    say('CPU and memory need /proc, which only Linux has: there are requests per second only.');
  say('Starting PostgreSQL, upstream and clients …');
  const { bench, site } = await stage.setUp(options);
  const resting = options.guard ? null : await startOncegate(site, { name: 'idle' });
  const restingMs = performance.now();
  const admitted: Admitted[] = [];
  for (const contender of chosen) {
    say(`Starting and warming up: ${contender.label} …`);
    admitted.push(await admit(bench, site, contender, options));
  }
  const results = await playRounds(bench, admitted, options);
  if (options.guard) return tellGuard(results);
  const { rows } = await bench.client.query<{ version: string }>(
    `SELECT current_setting('server_version') AS version`,
  );
  const idleMb = resting === null ? null : await idleMemory(resting, restingMs);
  const findings = { results, idleMb, ...(await otherPhases(bench, admitted)) };
  report(options, findings, rows[0]?.version ?? 'unknown');
  return 0;
}

function tellGuard(results: Findings['results']): number {
  console.log(`\n${costTableOf(results)}\n`);
  const guarded = guard(results);
  console.log(guarded?.text ?? 'Nothing was compared: that needs /proc.');
  return guarded === null || guarded.isWithin ? 0 : 1;
}

function choose(only: readonly string[]): readonly Contender[] {
  const unknown = only.find((name) => !contenders.some((contender) => contender.name === name));
  if (unknown !== undefined) {
    const names = contenders.map(({ name }) => name).join(', ');
    throw new UsageError(`--only: there is no contender "${unknown}"; there are ${names}`);
  }
  const wanted = only.length === 0 ? contenders : contenders.filter(({ name }) => only.includes(name));
  return wanted.filter((contender) => {
    const missing = contender.missing?.() ?? null;
    if (missing !== null) say(`Left out: ${contender.label}: ${missing}`);
    return missing === null;
  });
}

async function otherPhases(
  bench: Bench,
  admitted: readonly Admitted[],
): Promise<Omit<Findings, 'results' | 'idleMb'>> {
  const find = (wanted: string): Admitted | undefined => admitted.find(({ name }) => name === wanted);
  const [direct, first] = [find('direct'), find('first')];
  if (first === undefined) return { latency: [], crowdMb: null };
  say('At one connection, and at many …');
  return {
    latency: direct === undefined ? [] : await measureLatency(bench, direct, first),
    crowdMb: await memoryUnderCrowd(bench, first),
  };
}

function report(options: Options, findings: Findings, postgresql: string): void {
  const verdicts = judge(findings);
  const about = describeRun(postgresql, 'npm run bench --');
  const { machine, versions } = about;
  const { requests, rounds, connections, warmUpRequests } = options;
  console.log(`
${rounds} rounds of ${requests} requests each on ${connections} connections, after ${warmUpRequests} to warm up; \
${machine.cores} × ${machine.cpu}, load ${machine.loadAverage[0]}; Node ${versions.node}, PostgreSQL ${postgresql}, \
commit ${versions.commit}${versions.changedFiles === 0 ? '' : ' and changes'}

${costTableOf(findings.results)}

${paceTableOf(findings.results)}

${verdicts.length === 0 ? '' : `${goalTableOf(verdicts)}\n`}`);
  console.log(`Every turn: ${save('bench', { ...about, options, verdicts, ...findings })}`);
}

await onStage(usage, async (args, stage) => {
  const options = parseOptions(args);
  return options === 'help' ? 'help' : await run(options, stage);
});
