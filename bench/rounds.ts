import type { Contender } from './contenders.ts';
import { type Bench, type Entrant, type Turn, takeTurn } from './measure.ts';
import { peakMemory, startMemory } from './memory.ts';
import type { Options } from './options.ts';
import type { Result } from './report.ts';
import { say } from './say.ts';
import type { Site } from './start.ts';
import { warmUp } from './warm-up.ts';

export type Admitted = Entrant & { readonly startMb: number | null };

export async function admit(
  bench: Bench,
  site: Site,
  contender: Contender,
  options: Options,
): Promise<Admitted> {
  const entrant = { ...contender, ...(await contender.start(site)) };
  const startMb = await startMemory(entrant);
  const { warmUpRequests: requests, warmUpSeconds: seconds, connections } = options;
  await warmUp(bench, entrant, { requests, seconds, connections }, say);
  return { ...entrant, startMb };
}

export async function playRounds(
  bench: Bench,
  entrants: readonly Admitted[],
  options: Options,
): Promise<Result[]> {
  const turns = new Map<Admitted, Turn[]>(entrants.map((entrant) => [entrant, []]));
  for (let round = 0; round < options.rounds; round += 1) {
    if (round > 0 && process.uptime() > options.roundsUntilSeconds) break;
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
    startMb: entrant.startMb,
    peakMb: peakMemory(entrant),
  }));
}

export function describe({ proxy, postgres, requestsPerSecond }: Turn): string {
  const parts = [`${requestsPerSecond.toFixed(0)} requests/s`];
  if (proxy !== null) parts.push(`proxy ${proxy.toFixed(0)} µs`);
  if (postgres !== null) parts.push(`PostgreSQL ${postgres.toFixed(0)} µs`);
  return parts.join(', ');
}
