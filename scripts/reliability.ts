/**
 * `npm run reliability`: RELIABILITY.md from what the long runs left in .cache. It counts and copies; every figure was measured
 * by the command that stands beside it.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Outcome } from '../drill/drill.ts';
import type { Progress } from '../test/simulation/progress.ts';
import { coreActions, moreActions, points } from '../torture/points.ts';
import type { Summary } from '../torture/summary.ts';

const root = join(import.meta.dirname, '..');

/** What a run left behind; `command` makes it. */
function load<T>(file: string, command: string): T {
  const path = join(root, '.cache', file);
  if (!existsSync(path)) throw new Error(`.cache/${file} is not there: ${command}`);
  return JSON.parse(readFileSync(path, 'utf8')) as T;
}

interface DrillReport extends Outcome {
  readonly command: string;
  readonly options: { readonly seed: number };
  readonly commit: string;
}

interface Breakage {
  readonly rule: string;
  readonly test: string;
  readonly caught: boolean;
  readonly red: string | null;
}

interface MutationReport {
  readonly files: Record<string, { readonly mutants: readonly { readonly status: string }[] }>;
}

const many = (n: number): string => n.toLocaleString('en-US');
const row = (...cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`;
const table = (head: readonly string[], rows: readonly string[]): string =>
  [row(...head), row(...head.map(() => '---')), ...rows].join('\n');
const keys = (counts: Record<string, number>): string => Object.keys(counts).join(', ');

function tortureSection(): string {
  const summary = load<Summary>('torture/long/summary.json', 'npm run torture');
  const { runs, starts, calls, servedShare, violations, rare, replicas, missed } = summary;
  const broken = (rule: string): number => violations.filter((one) => one.rule === rule).length;
  const cell = (point: string, action: string): string => {
    const outcomes = Object.entries(summary.cells[point]?.[action] ?? {}).sort((a, b) => b[1] - a[1]);
    return outcomes.map(([outcome, n]) => `${n} ${outcome}`).join(', ') || '–';
  };

  const lines = points.map(({ name }) => row(name, ...coreActions.map((action) => cell(name, action))));
  const moreLines = points
    .filter(({ name }) => moreActions.some((action) => summary.cells[name]?.[action] !== undefined))
    .map(({ name }) => row(name, ...moreActions.map((action) => cell(name, action))));
  return `## Faults at named points

\`npm run torture\`, seeds ${keys(summary.seeds)}; Node ${keys(summary.node)}, PostgreSQL ${keys(summary.postgres)}, commits ${keys(summary.commits)}.

**${many(runs)} faulted runs: ${broken('at most once')} double executions, ${broken('an answer that was seen is kept') + broken('the same answer')} lost or changed answers**. Runs that broke any rule at all: ${violations.length}.
${violations.map(({ rule, what, run }) => `\n- run ${run}: ${rule}: ${what}; [docs/torture.md](docs/torture.md#measured) says why`).join('')}

${many(replicas.one)} runs with one replica, ${many(replicas.three)} with three; ${many(missed)} more whose point was not
reached. ${many(calls)} client calls, of which ${(servedShare * 100).toFixed(1)} % were answered by an execution or a replay, and ${many(starts)} requests
at the upstream.

What became of the key affected by the fault, by point and action. \`completed\`: it has an answer; \`unknown\`: nobody can know,
and no retry runs it; \`failed_retryable\`: it provably did not run, or was freed; \`none\`: past its retention, and reaped.

${table(['point', ...coreActions], lines)}

Tried at some points each time round:

${table(['point', ...moreActions], moreLines)}

Rare states, and in how many runs each was met:

${table(
  ['state', 'runs'],
  Object.entries(rare).map(([state, n]) => row(state, many(n))),
)}
${summary.skipped.length === 0 ? '' : `\nSkipped: ${summary.skipped.join('; ')}.\n`}
A fault repeats its choices with \`npm run torture -- --seed S\`; the rules of the checker are in [docs/torture.md](docs/torture.md).`;
}

function simulationSection(): string {
  const { tally, wallSeconds, sources } = load<Progress>('simulation/progress.json', 'npm run simulate');
  const perMinute = Math.round((tally.played / wallSeconds) * 60);
  const seen = Object.entries(tally.seen).sort((a, b) => a[1] - b[1]);
  return `## Simulation

\`npm run simulate -- --schedules ${tally.played}\`: **${many(tally.played)} schedules, ${tally.failed.length} violations**, ${many(perMinute)} a minute on two
cores; ${many(tally.steps)} steps, ${many(tally.calls)} calls. Sources ${sources}; the seeds are 1 to ${many(tally.played)}. The guarded path, its
store and its loops as they are shipped, on virtual time, with a driver, an upstream and sockets that the schedule rules; after
every step the promises are compared with what really happened.

${tally.failed.map(({ seed, violation }) => `- \`npm run simulate -- --seed ${seed}\`: ${violation}\n`).join('')}
The rarest of what was met, and in how many schedules:

${table(
  ['state', 'schedules'],
  seen.slice(0, 16).map(([state, n]) => row(state, many(n))),
)}`;
}

const drills = ['hammer', 'mixed', 'failover-sync', 'failover-async', 'suspend', 'hot-key', 'late', 'pooler'];

function drillSection(): string {
  const lines = drills.flatMap((name) => {
    const report = load<DrillReport>(`drill/${name}.json`, `npm run drill -- ${name}`);
    const { commit, findings, options } = report;
    const command = report.command.replace(/( --seed \d+)?$/, ` --seed ${options.seed}`);
    return findings.map(({ kind, promise, evidence }, at) =>
      row(at === 0 ? `\`${command}\` on ${commit}` : '', promise, kind, evidence),
    );
  });
  return `## Drills

Under load, with everything real; [docs/drills.md](docs/drills.md) says what each does. \`limit\` is a documented loss that was shown.

${table(['command', 'promise', 'result', 'evidence'], lines)}`;
}

function breakageSection(): string {
  const all = load<Breakage[]>('breakages.json', 'npm run breakages -- --json .cache/breakages.json');
  const caught = all.filter((one) => one.caught);
  const known = all.filter(({ rule }) => rule.startsWith('known bad: '));
  const lines = known.map(({ rule, test, red }) =>
    row(rule.slice('known bad: '.length), `\`${test}\``, red ?? '**not caught**'),
  );
  return `## That the tests can fail

\`npm run breakages\` breaks one rule at a time in a copy and runs the test that must go red: ${caught.length} of ${all.length} trials caught. Those
below are what others have shipped.

${table(['known-bad variant', 'caught by', 'test'], lines)}`;
}

function mutationSection(): string {
  const { files } = load<MutationReport>('mutants.json', 'npm run mutants');
  const all = Object.values(files).flatMap(({ mutants }) => mutants.map(({ status }) => status));
  const of = (...statuses: string[]): number => all.filter((status) => statuses.includes(status)).length;
  const [killed, left] = [of('Killed', 'Timeout'), of('Survived', 'NoCoverage')];
  return `## Mutants of the decisions

\`npm run mutants\` (Stryker) on \`src/core\`: **${((100 * killed) / (killed + left)).toFixed(1)} %** of ${many(killed + left)} mutants killed, ${left} left; each of those
is explained in [docs/mutants.md](docs/mutants.md).`;
}

const notCovered = `## Not covered

- Loss of acknowledged commits: a failover to an asynchronous standby, a restore, a disk that lies about fsync.
- A process that is put to sleep between its last look at the lease and the write of the first byte, and whose key a person frees
  meanwhile: it sends when it wakes. The upstream can refuse it by \`Oncegate-Epoch\`.
- More than one machine: partitions are made by proxies on loopback, clocks by the simulation only.
- Managed PostgreSQL, Citus, Kubernetes itself; other systems than Linux x64. CI runs the tests on
  Node.js 24 too, and \`.ci/run full\` on 22; every figure here is of Node.js 20.
- Upstreams with HTTP/2 or behind further proxies that retry by themselves.`;

function page(): string {
  const sections = [
    tortureSection(),
    simulationSection(),
    drillSection(),
    breakageSection(),
    mutationSection(),
  ];
  return `# Reliability

At most once, measured at the upstream. This page is made by \`npm run reliability\` from what the commands on it left behind; run
them to get your own. Machine: two shared cores, everything on loopback.

${sections.join('\n\n')}

${notCovered}
`;
}

try {
  writeFileSync(join(root, 'RELIABILITY.md'), page());
  console.log('RELIABILITY.md written');
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
