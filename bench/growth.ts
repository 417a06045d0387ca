/** `npm run bench:growth`: what a first request costs, and how fast the reaper is, as the store grows. */
import { statfsSync, writeFileSync } from 'node:fs';
import { freePort } from '../src/store/postgres/embedded-launch.ts';
import { build } from './build.ts';
import { describeRun } from './describe-run.ts';
import { type GrowthOptions, growthUsage, parseGrowthOptions } from './growth-options.ts';
import { growthPlot } from './growth-plot.ts';
import { type Grown, growthTables } from './growth-report.ts';
import { onStage } from './main.ts';
import { type Bench, type Turn, takeTurn } from './measure.ts';
import { measureReaping } from './reaping.ts';
import { describe } from './rounds.ts';
import { save } from './save.ts';
import { say } from './say.ts';
import { quantileMs, reserveBuckets, scrape } from './scrape.ts';
import type { Stage } from './stage.ts';
import { type Site, type Started, startOncegate } from './start.ts';
import { checkOneScope, execute, fillOncegateStore, makeOncegateStore } from './stores.ts';
import { warmUp } from './warm-up.ts';

interface Field extends Started {
  readonly keys: number;
  readonly url: string;
  readonly opsPort: number;
  readonly rowsPerSecond: number;
  readonly turns: Turn[];
}

const traffic = { kind: 'first' } as const;

/** An estimate that errs on the side of too much: table, indexes, and the log of writes. */
const bytesPerKey = 1_500;

async function run(options: GrowthOptions, stage: Stage): Promise<number> {
  build();
  const { bench, site } = await stage.setUp({ keys: 0, profileDir: null });
  checkDisk(site.dir, options);
  const fields: Field[] = [];
  for (const keys of options.sizes) fields.push(await makeField(site, keys));
  for (const field of fields) {
    say(`Warming up: ${field.keys} keys …`);
    await warmUp(bench, { ...field, traffic }, { ...warmth(options), seconds: Infinity }, say);
    await checkOneScope(field.url);
  }
  const before = await Promise.all(fields.map(async ({ opsPort }) => reserveBuckets(await scrape(opsPort))));
  await playRounds(bench, fields, options);
  const results: Grown[] = [];
  for (const [index, field] of fields.entries()) {
    const after = reserveBuckets(await scrape(field.opsPort));
    const { keys, turns } = field;
    const reserveP99Ms = quantileMs(before[index] ?? new Map(), after, 0.99);
    say(`Reaping: ${keys} keys …`);
    const reaping = await measureReaping(bench, site, field, Math.min(keys, options.expired), {
      connections: options.connections,
      warmUpRequests: options.warmUpRequests,
    });
    results.push({ keys, turns, reserveP99Ms, reaping });
  }
  await report(bench, options, results);
  return 0;
}

function warmth({ warmUpRequests, connections }: GrowthOptions) {
  return { requests: warmUpRequests, connections };
}

function checkDisk(dir: string, { sizes, expired }: GrowthOptions): void {
  const { bavail, bsize } = statfsSync(dir);
  const needed = sizes.reduce((sum, keys) => sum + keys + 2 * Math.min(keys, expired), 0) * bytesPerKey;
  if (needed > bavail * bsize)
    throw new Error(`${dir} has too little room: ${Math.ceil(needed / 1e9)} GB are needed`);
}

/** Rows of one statement: a line now and then while it goes on. */
const chunk = 1_000_000;

async function makeField(site: Site, keys: number): Promise<Field> {
  say(`Filling a store with ${keys} keys …`);
  let startedMs = performance.now();
  const url = await site.database(`growth_${keys}`, async (made) => {
    await makeOncegateStore(made, 1, site.start);
    startedMs = performance.now();
    for (let done = 1; done < keys; done += chunk) {
      await fillOncegateStore(made, Math.min(chunk, keys - done));
      if (keys > chunk) say(`  ${Math.min(100, Math.round((100 * (done + chunk)) / keys))} %`);
    }
    await execute(made, ['VACUUM ANALYZE oncegate.record', 'CHECKPOINT']);
  });
  const rowsPerSecond = (1000 * keys) / (performance.now() - startedMs);
  const opsPort = await freePort(0);
  // Its reaper has nothing to do here; measureReaping has an instance of its own for that.
  const env = { ONCEGATE_LOOPS_REAP: '24h' };
  const started = await startOncegate(site, { name: `growth-${keys}`, databaseUrl: url, opsPort, env });
  return { ...started, keys, url, opsPort, rowsPerSecond, turns: [] };
}

async function playRounds(bench: Bench, fields: readonly Field[], options: GrowthOptions): Promise<void> {
  for (let round = 0; round < options.rounds; round += 1) {
    const first = round % fields.length;
    for (const field of [...fields.slice(first), ...fields.slice(0, first)]) {
      const label = `${field.keys} keys`;
      const turn = await takeTurn(bench, { ...field, label, traffic, usesStore: true }, options);
      field.turns.push(turn);
      say(`Round ${round + 1} of ${options.rounds}: ${label}: ${describe(turn)}`);
    }
  }
}

async function report(bench: Bench, options: GrowthOptions, results: readonly Grown[]): Promise<void> {
  const { rows } = await bench.client.query<{ version: string }>(
    `SELECT current_setting('server_version') AS version`,
  );
  const about = describeRun(rows[0]?.version ?? 'unknown', 'npm run bench:growth --');
  console.log(`\n${growthTables(results)}\n`);
  console.log(`Every turn: ${save('growth', { ...about, options, results })}`);
  if (options.plotFile === null) return;
  writeFileSync(
    options.plotFile,
    growthPlot(results, `commit ${about.versions.commit}, ${about.machine.cpu}`),
  );
  console.log(`The curve: ${options.plotFile}`);
}

await onStage(growthUsage, async (args, stage) => {
  const options = parseGrowthOptions(args);
  return options === 'help' ? 'help' : await run(options, stage);
});
