import { setTimeout as delay } from 'node:timers/promises';
import { countRecords } from '../test/helpers/records.ts';
import type { Context, Drill, Outcome } from './drill.ts';
import { Load } from './load.ts';
import { outcomeOf } from './mixed-outcome.ts';
import { leaseMs, MixedScene, sweepMs } from './mixed-scene.ts';
import { Trouble } from './mixed-trouble.ts';
import { Visits } from './mixed-visits.ts';
import { MoodyUpstream } from './moody-upstream.ts';
import { untilSettled, verify, verifyUnknown } from './verify.ts';

const workers = 24;
/** Milliseconds after which a client leaves a replica that does not answer, and goes to the next. */
const tryMs = 2_500;

export const mixed: Drill = {
  name: 'mixed',
  about: 'all kinds of requests on three sidecars, and a random failure every few seconds (600 seconds)',
  missing: () => null,
  run,
};

async function run({ stage, options, random, say }: Context): Promise<Outcome> {
  const seconds = options.seconds ?? (options.isShort ? 15 : 600);
  const upstream = await MoodyUpstream.start(stage, random);
  const scene = await MixedScene.start(stage, upstream.url);
  const { urls, server } = scene;
  const load = new Load({ urls, random, workers, prefix: 'mixed', tryMs });
  const visits = new Visits(load, urls, random);
  const trouble = new Trouble(stage, scene, options.seed);
  for (let passed = 0; passed < seconds; ) {
    const stepSeconds = Math.min(10, seconds - passed);
    await delay(stepSeconds * 1_000);
    passed += stepSeconds;
    const share = Math.round((100 * load.answered) / load.calls);
    const done = `${load.finals.size} keys, ${share} % of ${load.calls} calls answered`;
    say(`${passed} of ${seconds} s: ${done}, ${trouble.happened.length} faults`);
  }
  await trouble.stop();
  await Promise.all([load.stop(), visits.stop()]);
  upstream.calm();
  await scene.untilReady();
  say(`Healed; asking for ${load.finals.size} keys …`);
  const inProgress = await untilSettled({ leaseMs, sweepMs }, () =>
    countRecords(server.url, `state = 'in_progress'`),
  );
  const verified = await verify(load, upstream, urls);
  const ranUnknown = await verifyUnknown(verified.unknown, upstream, urls);
  const keys = new Set(upstream.starts.map(({ key }) => key));
  const ranAgain = [...keys].flatMap((key) => upstream.faultsOf(key));
  const failedStarts = scene.replicas.flatMap((replica) => replica.failedStarts);
  const { happened } = trouble;
  const after = { inProgress, verified, ranUnknown, ranAgain };
  return outcomeOf({ seconds, load, visits, upstream, happened, failedStarts, ...after });
}
