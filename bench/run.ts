/**
 * `npm run bench`: what a guarded request costs beside a plain proxy, and beside one statement per request. Starts all
 * it needs and stops it again. The figure is CPU time per request: unlike seconds it hardly depends on what else runs.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { root } from './child.ts';
import { type Contender, contenders } from './contenders.ts';
import { canMeasureCpu } from './cpu-time.ts';
import { describeRun } from './describe-run.ts';
import { type Bench, type Entrant, type Turn, takeTurn } from './measure.ts';
import { type Options, parseOptions, UsageError, usage } from './options.ts';
import { type Result, ratiosOf, ratioTableOf, tableOf } from './report.ts';
import { Stage } from './stage.ts';

const say = (line: string): void => void process.stderr.write(`${line}\n`);

async function run(options: Options, stage: Stage): Promise<void> {
  const chosen = choose(options.only);
  build('scripts/setup.mjs', 'build');
  build('node_modules/.bin/tsc', '-p', 'bench/tsconfig.json');
  if (!canMeasureCpu)
    say('CPU figures need /proc, which only Linux has: there are requests per second only.');
  say('Starting PostgreSQL, upstream and clients …');
  const { bench, site } = await stage.setUp(options);
  const entrants: Entrant[] = [];
  for (const contender of chosen) {
    say(`Starting and warming up: ${contender.label} …`);
    entrants.push(await stage.enter(bench, site, contender, options));
  }
  const results = await playRounds(bench, entrants, options);
  const { rows } = await bench.client.query<{ version: string }>(
    `SELECT current_setting('server_version') AS version`,
  );
  report(options, results, rows[0]?.version ?? 'unknown');
}

function build(script: string, ...args: string[]): void {
  const { status } = spawnSync(process.execPath, [join(root, script), ...args], {
    cwd: root,
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error(`${script} failed`);
}

function choose(only: readonly string[]): readonly Contender[] {
  const unknown = only.find((name) => !contenders.some((contender) => contender.name === name));
  if (unknown !== undefined) {
    const names = contenders.map(({ name }) => name).join(', ');
    throw new UsageError(`--only: there is no contender "${unknown}"; there are ${names}`);
  }
  return only.length === 0 ? contenders : contenders.filter(({ name }) => only.includes(name));
}

async function playRounds(bench: Bench, entrants: readonly Entrant[], options: Options): Promise<Result[]> {
  const turns = new Map<Entrant, Turn[]>(entrants.map((entrant) => [entrant, []]));
  for (let round = 0; round < options.rounds; round += 1) {
    // Another one begins each round: who comes after whom must not matter.
    const first = round % entrants.length;
    for (const entrant of [...entrants.slice(first), ...entrants.slice(0, first)]) {
      const turn = await takeTurn(bench, entrant, options);
      turns.get(entrant)?.push(turn);
      say(`Round ${round + 1} of ${options.rounds}: ${entrant.label}: ${describe(turn)}`);
    }
  }
  return entrants.map((entrant) => ({
    name: entrant.name,
    label: entrant.label,
    turns: turns.get(entrant) ?? [],
  }));
}

function describe({ proxy, postgres, requestsPerSecond }: Turn): string {
  const parts = [`${requestsPerSecond.toFixed(0)} requests/s`];
  if (proxy !== null) parts.push(`proxy ${proxy.toFixed(0)} µs`);
  if (postgres !== null) parts.push(`PostgreSQL ${postgres.toFixed(0)} µs`);
  return parts.join(', ');
}

function report(options: Options, results: readonly Result[], postgresql: string): void {
  const ratios = ratiosOf(results);
  const about = describeRun(postgresql);
  const { machine, versions } = about;
  const { requests, rounds, connections } = options;
  console.log(`
${rounds} rounds of ${requests} POSTs each on ${connections} connections; ${machine.cores} × ${machine.cpu}, \
load ${machine.loadAverage[0]}; Node ${versions.node}, PostgreSQL ${postgresql}, commit ${versions.commit}${
    versions.changedFiles === 0 ? '' : ' and changes'
  }

${tableOf(results)}
${ratios.length === 0 ? '' : `\n${ratioTableOf(ratios)}\n`}`);
  const dir = join(root, '.cache/bench');
  mkdirSync(dir, { recursive: true });
  const file = join(dir, `${about.at.replaceAll(':', '-')}.json`);
  writeFileSync(file, `${JSON.stringify({ ...about, options, ratios, results }, null, 2)}\n`);
  console.log(`Every turn: ${relative(process.cwd(), file)}`);
}

async function main(): Promise<number> {
  const stage = new Stage();
  let stopped = false;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      stopped = true;
      say('Stopping …');
      void stage.strike();
    });
  }
  try {
    const options = parseOptions(process.argv.slice(2));
    if (options === 'help') console.log(usage);
    else await run(options, stage);
    return 0;
  } catch (error) {
    // What was under way lost its partners.
    if (stopped) return 1;
    const isUsage = error instanceof UsageError;
    say(`bench: ${(error as Error).message}${isUsage ? `\n\n${usage}` : ''}`);
    return isUsage ? 2 : 1;
  } finally {
    await stage.strike();
  }
}

process.exitCode = await main();
