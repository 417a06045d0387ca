/**
 * `npm run bench:churn`: whether the store stays as large as what it holds while keys come, are answered, expire and are reaped.
 * Keys are written in bulk, with the two changes that a request makes; an Oncegate with its defaults reaps them.
 */
import { parseArgs } from 'node:util';
import pg from 'pg';
import { freePort } from '../src/store/postgres/embedded-launch.ts';
import { build } from './build.ts';
import { answerKeys, compact, reserveKeys, type Size, sizeNow } from './churn-store.ts';
import { describeRun } from './describe-run.ts';
import { onStage } from './main.ts';
import { count, UsageError } from './options.ts';
import { save } from './save.ts';
import { say } from './say.ts';
import { reapedIn, scrape } from './scrape.ts';
import type { Stage } from './stage.ts';
import { startOncegate } from './start.ts';
import { makeOncegateStore } from './stores.ts';
import { textTable } from './text-table.ts';

const usage = `usage: npm run bench:churn -- [options]

  --keys N   keys that go through the store (10000000: wants half an hour)
  --live N   keys that it holds at most (1000000)
  --set S    a storage parameter of the table, to compare, as in "fillfactor = 80"`;

const chunk = 10_000;
const retentionMs = 20_000;
const looks = 20;

interface Options {
  readonly keys: number;
  readonly live: number;
  readonly set: string | null;
}

interface Look extends Size {
  readonly passed: number;
  readonly reaped: number;
}

async function run({ keys, live, set }: Options, stage: Stage): Promise<number> {
  build();
  const { bench, site } = await stage.setUp({ keys: 0, profileDir: null });
  const url = await site.database('churn', (made) => makeOncegateStore(made, 1, site.start));
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    if (set !== null) await client.query(`ALTER TABLE oncegate.record SET (${set})`);
    const opsPort = await freePort(0);
    await startOncegate(site, { name: 'churn', databaseUrl: url, opsPort });
    const reaped = async (): Promise<number> => reapedIn(await scrape(opsPort));
    const all: Look[] = [];
    for (let passed = chunk; passed <= keys; passed += chunk) {
      const names = await reserveKeys(client, chunk);
      await answerKeys(client, names, retentionMs);
      await roomFor(reaped, passed - live);
      if (passed % Math.max(chunk, Math.floor(keys / looks / chunk) * chunk) !== 0) continue;
      const look = { passed, reaped: await reaped(), ...(await sizeNow(client)) };
      all.push(look);
      say(`${passed} of ${keys} keys, ${look.reaped} reaped: ${inWords(look)}`);
    }
    await roomFor(reaped, keys);
    const empty = { passed: keys, reaped: await reaped(), ...(await sizeNow(client)) };
    await compact(client);
    const compacted = { passed: keys, reaped: empty.reaped, ...(await sizeNow(client)) };
    console.log(`\n${tableOf([...all, empty, compacted])}\n`);
    const { rows } = await bench.client.query<{ version: string }>(
      `SELECT current_setting('server_version') AS version`,
    );
    const about = describeRun(rows[0]?.version ?? 'unknown', 'npm run bench:churn --');
    console.log(`Every look: ${save('churn', { ...about, looks: all, empty, compacted })}`);
    return 0;
  } finally {
    await client.end();
  }
}

/** Milliseconds in which a reaper that has something to do does some of it. */
const silenceMs = 180_000;

async function roomFor(reaped: () => Promise<number>, wanted: number): Promise<void> {
  if (wanted <= 0) return;
  let [seen, seenMs] = [await reaped(), performance.now()];
  while (seen < wanted) {
    if (performance.now() - seenMs > silenceMs) throw new Error(`the reaper stopped at ${seen} of ${wanted}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
    const count = await reaped();
    if (count !== seen) [seen, seenMs] = [count, performance.now()];
  }
}

const mb = (bytes: number): string => (bytes / 1_048_576).toFixed(0);

function inWords({ tableBytes, indexBytes, deadRows, vacuums }: Size): string {
  return `table ${mb(tableBytes)} MB, indexes ${mb(indexBytes)} MB, ${deadRows} dead rows, vacuumed ${vacuums} times`;
}

function tableOf(all: readonly Look[]): string {
  const title = ['keys passed', 'in the store', 'table MB', 'indexes MB', 'dead rows', 'vacuums'];
  const rows = all.map(({ passed, reaped, tableBytes, indexBytes, deadRows, vacuums }) => [
    String(passed),
    String(passed - reaped),
    mb(tableBytes),
    mb(indexBytes),
    String(deadRows),
    String(vacuums),
  ]);
  return textTable([title, ...rows]);
}

await onStage(usage, async (args, stage) => {
  const { values } = parse(args);
  if (values.help) return 'help';
  const keys = count('keys', values.keys, 10_000_000);
  const live = count('live', values.live, 1_000_000);
  if (keys < 2 * chunk || live < 2 * chunk)
    throw new UsageError(`--keys, --live: at least ${2 * chunk}, for they come ${chunk} at a time`);
  return await run({ keys, live, set: values.set ?? null }, stage);
});

function parse(args: readonly string[]) {
  try {
    const options = {
      help: { type: 'boolean', short: 'h' },
      keys: { type: 'string' },
      live: { type: 'string' },
      set: { type: 'string' },
    } as const;
    return parseArgs({ args: [...args], options });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
