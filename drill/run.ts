/**
 * `npm run drill -- <name>`: a failure made on purpose, under load, with everything real, and what became of the promises.
 * Starts all it needs on loopback and stops it again.
 */
import type { Drill } from './drill.ts';
import { failover } from './failover.ts';
import { hammer } from './hammer.ts';
import { hotKey } from './hot-key.ts';
import { late } from './late.ts';
import { mixed } from './mixed.ts';
import { type Options, parseOptions, UsageError } from './options.ts';
import { pooler } from './pooler.ts';
import { Random } from './random.ts';
import { passed, report } from './report.ts';
import { Stage } from './stage.ts';
import { suspend } from './suspend.ts';

const drills: readonly Drill[] = [failover, suspend, hotKey, late, pooler, hammer, mixed];

const usage = `usage: npm run drill -- <name> [options]

${drills.map(({ name, about }) => `  ${name.padEnd(10)} ${about}`).join('\n')}
  all        every one of them

  --rounds N     of failover and suspend
  --seconds N    of load in pooler and mixed
  --requests N   of hammer
  --sync, --async    which standby in failover (--sync)
  --short        a first impression: all of them in about two and a half minutes
  --seed N       the same choices again`;

const say = (line: string): void => void process.stderr.write(`${line}\n`);

/** Every drill has a stage of its own: what one leaves behind must not matter to the next. */
async function perform(drill: Drill, options: Options, stages: Set<Stage>): Promise<boolean> {
  const stage = new Stage();
  stages.add(stage);
  const name = drill.name === 'failover' ? `failover-${options.replication}` : drill.name;
  console.log(`\n== ${name}, seed ${options.seed}`);
  try {
    const outcome = await drill.run({ stage, options, random: new Random(options.seed), say });
    report(name, options, outcome);
    return passed(outcome);
  } finally {
    await stage.strike();
    stages.delete(stage);
  }
}

async function performAll(options: Options, stages: Set<Stage>): Promise<boolean> {
  const failed: string[] = [];
  const skipped: string[] = [];
  for (const drill of drills) {
    const missing = drill.missing();
    if (missing !== null) {
      skipped.push(`${drill.name} (it needs ${missing})`);
      continue;
    }
    const kinds = drill === failover ? (['sync', 'async'] as const) : ([options.replication] as const);
    for (const replication of kinds)
      if (!(await perform(drill, { ...options, replication }, stages))) failed.push(drill.name);
  }
  for (const one of skipped) console.log(`SKIPPED  ${one}`);
  console.log(failed.length === 0 ? '\nall passed' : `\nFAILED: ${failed.join(', ')}`);
  return failed.length === 0;
}

async function main(stages: Set<Stage>): Promise<number> {
  const line = parseOptions(process.argv.slice(2));
  if (line === 'help') {
    console.log(usage);
    return 0;
  }
  const { name, options } = line;
  if (name === 'all') return (await performAll(options, stages)) ? 0 : 1;
  const drill = drills.find((one) => one.name === name);
  if (drill === undefined) throw new UsageError(`there is no drill "${name}"`);
  const missing = drill.missing();
  if (missing !== null) throw new Error(`${name} needs ${missing}`);
  return (await perform(drill, options, stages)) ? 0 : 1;
}

const stages = new Set<Stage>();
let isStopping = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    isStopping = true;
    say('Stopping …');
    void Promise.all([...stages].map((stage) => stage.strike())).then(() => process.exit(130));
  });
}

let code: number;
try {
  code = await main(stages);
} catch (error) {
  const isUsage = error instanceof UsageError;
  // What was under way at a Ctrl-C lost its partners.
  if (!isStopping) say(`drill: ${(error as Error).message}${isUsage ? `\n\n${usage}` : ''}`);
  code = isUsage ? 2 : 1;
}
// Clients that were given up may still wait for an answer. After Ctrl-C its own handler ends us, once all is stopped.
if (!isStopping) process.exit(code);
