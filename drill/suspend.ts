import { testDatabase } from '../test/helpers/postgres.ts';
import { type SidecarProcess, sidecarProcess } from '../test/helpers/sidecar.ts';
import { until } from '../test/helpers/until.ts';
import type { Context, Drill, Outcome } from './drill.ts';
import { HoldingUpstream } from './holding-upstream.ts';
import { Random } from './random.ts';
import { outcomeOf } from './suspend-outcome.ts';
import { type Plan, play, type Round } from './suspend-round.ts';

/** One connection: everything behind the first request waits in undici's queue, already reserved. */
const config = `
lease: 1s
loops: { sweep: 200ms }
upstream: { connections: 1, timeout: 5m }
defaults: { inFlight: { wait: 0s } }`;

export const suspend: Drill = {
  name: 'suspend',
  about:
    'one of two sidecars sleeps past its lease, its keys are freed and run elsewhere, it wakes (100 rounds)',
  missing: () => (process.platform === 'linux' ? null : 'Linux: whether a process sleeps is read from /proc'),
  run,
};

async function run({ stage, options, say }: Context): Promise<Outcome> {
  const rounds = options.rounds ?? (options.isShort ? 3 : 100);
  const upstream = await HoldingUpstream.start(stage);
  const { url: databaseUrl } = await testDatabase(stage);
  const start = () => sidecarProcess(stage, { upstream: upstream.url, databaseUrl, config });
  const sidecars = await Promise.all([start(), start()]);
  const done: Round[] = [];
  for (let number = 1; number <= rounds; number += 1) {
    const [sleeper, other] = number % 2 === 0 ? sidecars : ([sidecars[1], sidecars[0]] as const);
    await until('both have a lease', async () => (await isReady(sleeper)) && (await isReady(other)));
    const round = await play(
      { upstream, databaseUrl, sleeper, other },
      number,
      choose(options.seed + number),
    );
    done.push(round);
    const { plan, old } = round;
    say(
      `Round ${number} of ${rounds}: ${plan.queued} queued, ${plan.letGo}, ${plan.rerun}: ` +
        `${old.sentAfterWaking.length} sent after waking, ${round.faults.length} faults`,
    );
  }
  return outcomeOf(done);
}

/** A seed of its own for each round, so that any round can be had again alone. */
function choose(seed: number): Plan {
  const random = new Random(seed);
  return {
    queued: random.between(1, 5),
    settlesFirst: random.chance(0.7),
    letGo: random.pick(['answered while it sleeps', 'answered after it woke']),
    rerun: random.pick(['rerun done', 'rerun under way']),
  };
}

async function isReady({ opsUrl }: SidecarProcess): Promise<boolean> {
  return (await fetch(`${opsUrl}/readyz`)).status === 200;
}
