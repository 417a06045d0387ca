/**
 * `npm run torture`: proof at the upstream, under kill -9 at named points. Sidecar processes are killed, put to sleep past
 * their lease, cut off from PostgreSQL or from the upstream, exactly where it hurts; afterwards the upstream's own log says
 * how often each key ran. docs/torture.md says how to read it.
 *
 *   points.ts     where, and what is done there       plan.ts      seed and number → every choice of a run
 *   saboteur.mjs  in the sidecar: stands still there   play.ts      one run, from ordinary calls to asking again
 *   upstream.ts   the service, with its synced log     checker.ts   what was broken; pure
 *   results.ts    one line a run, for several calls    summary.ts   all lines in one, and whether it proves anything
 */
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { Stage } from '../drill/stage.ts';
import { crew } from './crew.ts';
import { parseOptions, UsageError, usage } from './options.ts';
import { Results } from './results.ts';
import { percent, type Summary, summarize } from './summary.ts';

const say = (line: string): void => void process.stderr.write(`${line}\n`);
const stage = new Stage();
const stopping = new AbortController();

async function main(): Promise<number> {
  const options = parseOptions(process.argv.slice(2));
  if (options === null) {
    console.log(usage);
    return 0;
  }
  const isTry = options.point !== undefined || options.action !== undefined;
  const name = options.isShort ? 'short' : isTry ? 'try' : 'long';
  const results = new Results(name, options.isFresh || name !== 'long');
  const { work, skipped } = await crew({ stage, options, results, say, stopping: stopping.signal });
  const conclude = (): Summary => {
    const summary = summarize(results.all, { skipped, isTry });
    writeFileSync(results.file('summary.json'), `${JSON.stringify(summary, null, 2)}\n`);
    return summary;
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      say('Stopping; the same command goes on from here …');
      stopping.abort();
      conclude();
      void stage.strike().then(() => process.exit(130));
    });
  }
  await work();
  // Ctrl-C has taken everything away: its own handler ends us.
  if (stopping.signal.aborted) return 130;
  const summary = conclude();
  tell(summary, relative(process.cwd(), results.file('summary.json')));
  return summary.verdict === 'kept' ? 0 : 1;
}

function tell(summary: Summary, file: string): void {
  const { runs, calls, servedShare, starts, rare, violations, vacuous, skipped, verdict, missed } = summary;
  console.log(`\n${runs} faulted runs (${missed} missed their point), ${starts} starts at the upstream`);
  console.log(`${calls} calls, ${percent(servedShare)} answered by an execution or a replay`);
  for (const [name, count] of Object.entries(rare)) console.log(`  ${String(count).padStart(6)} × ${name}`);
  for (const { rule, what, run, seed } of violations.slice(0, 20))
    console.log(`BROKEN   ${rule}: ${what} (run ${run} of seed ${seed})`);
  for (const one of vacuous.slice(0, 20)) console.log(`VACUOUS  ${one}`);
  for (const one of skipped) console.log(`SKIPPED  ${one}`);
  console.log(`\n${verdict}: ${violations.length} violations; every figure: ${file}`);
}

let code: number;
try {
  code = await main();
} catch (error) {
  const isUsage = error instanceof UsageError;
  // What was under way at a Ctrl-C lost its partners.
  if (!stopping.signal.aborted) say(`torture: ${(error as Error).stack}${isUsage ? `\n\n${usage}` : ''}`);
  code = isUsage ? 2 : 1;
}
if (!stopping.signal.aborted) {
  await stage.strike();
  process.exit(code);
}
