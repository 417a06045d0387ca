import { setTimeout as delay } from 'node:timers/promises';
import { hasPgbouncer, startPgbouncer } from '../test/helpers/pgbouncer.ts';
import { testDatabase } from '../test/helpers/postgres.ts';
import { countRecords } from '../test/helpers/records.ts';
import { sidecarProcess } from '../test/helpers/sidecar.ts';
import { BackendKiller, everyMs } from './backend-killer.ts';
import { type Context, type Drill, finding, notVacuous, type Outcome } from './drill.ts';
import { Load } from './load.ts';
import { answer, loggedUpstream } from './logged-upstream.ts';
import { untilSettled, verify } from './verify.ts';

const leaseMs = 5_000;
const sweepMs = 500;
const config = `
lease: ${leaseMs}ms
loops: { sweep: ${sweepMs}ms }
upstream: { timeout: 10s }
defaults: { inFlight: { wait: 1s } }`;

const workers = 24;
const slowestMs = 20;
/** Of the time: fewer, and the load ran undisturbed. */
const leastShareOfKills = 0.5;

export const pooler: Drill = {
  name: 'pooler',
  about: 'load through PgBouncer in transaction mode while its server connections are ended (600 seconds)',
  missing: () => (hasPgbouncer ? null : 'PgBouncer: apt-get update && apt-get install pgbouncer'),
  run,
};

async function run({ stage, options, random, say }: Context): Promise<Outcome> {
  const seconds = options.seconds ?? (options.isShort ? 6 : 600);
  const { url: directUrl } = await testDatabase(stage);
  const bouncer = await startPgbouncer(directUrl);
  stage.teardown(() => bouncer.stop());
  const databaseUrl = bouncer.through(directUrl);
  const upstream = await loggedUpstream(stage, (start, res) => {
    setTimeout(answer, random.between(0, slowestMs), start, res);
  });
  const start = () => sidecarProcess(stage, { upstream: upstream.url, databaseUrl, config });
  const urls = [(await start()).dataUrl, (await start()).dataUrl];
  const killer = await BackendKiller.start(stage, directUrl, random);
  const load = new Load({ urls, random, workers, prefix: 'pooled' });
  for (let passed = 0; passed < seconds; ) {
    const stepSeconds = Math.min(10, seconds - passed);
    await delay(stepSeconds * 1_000);
    passed += stepSeconds;
    const { keys, refused } = progress(load);
    say(`${passed} of ${seconds} s: ${keys} keys, ${refused} × 503, ${killer.kills} server processes ended`);
  }
  await load.stop();
  await killer.stop();
  const inProgress = await untilSettled({ leaseMs, sweepMs }, () =>
    countRecords(directUrl, `state = 'in_progress'`),
  );
  const verified = await verify(load, upstream, urls);

  const { calls, answered, tries, disagreements } = load;
  const { keys, twice, lost, unknown, needlesslyUnknown, endless } = verified;
  const fewKills = killer.kills < (leastShareOfKills * seconds * 1_000) / everyMs;
  const { kills } = killer;
  return {
    findings: [
      finding('at most once', twice, `${keys} keys, none reached the upstream twice`),
      finding(
        'what a client saw is replayed',
        [...lost, ...disagreements],
        'every answer seen, byte for byte',
      ),
      finding(
        'nothing stays in progress',
        inProgress === 0 ? [] : [`${inProgress} records`],
        'none after lease + sweep + 5 s',
      ),
      finding('every key ends', endless, 'each answered or unknown'),
      notVacuous(answered, calls, fewKills ? [`only ${kills} server processes ended in ${seconds} s`] : []),
    ],
    tables: [
      {
        title: `${seconds} s of load`,
        head: [
          'keys',
          'calls',
          'server processes ended',
          'unknown',
          'never sent',
          'lost',
          'twice',
          'in progress',
        ],
        rows: [
          [
            keys,
            calls,
            kills,
            unknown.length,
            needlesslyUnknown.length,
            lost.length,
            twice.length,
            inProgress,
          ].map(String),
        ],
      },
      {
        title: 'tries',
        head: ['came to', 'times'],
        rows: Object.entries(tries).map(([what, n]) => [what, String(n)]),
      },
    ],
    facts: { seconds, calls, answered, tries, disagreements, inProgress, kills, ...verified },
  };
}

function progress({ finals, tries }: Load): { keys: number; refused: number } {
  return { keys: finals.size, refused: tries['store_unavailable'] ?? 0 };
}
