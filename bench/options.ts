import { parseArgs } from 'node:util';

export interface Options {
  /** Of one turn of one contender. */
  readonly requests: number;
  readonly rounds: number;
  /** Before the first that counts: the code must be compiled by then, and connections open. */
  readonly warmUpRequests: number;
  /** Of one warm-up, at most. */
  readonly warmUpSeconds: number;
  /** After so long, from the start of the process, no further round begins. */
  readonly roundsUntilSeconds: number;
  readonly connections: number;
  /** In each store before the first request. */
  readonly keys: number;
  /** Names of contenders; empty: all. */
  readonly only: readonly string[];
  /** Where to put a CPU profile of each Oncegate process; null: none. */
  readonly profileDir: string | null;
  /** Only the one ratio that CI looks at. */
  readonly guard: boolean;
}

export const usage = `usage: npm run bench -- [options]

  --quick             a first impression: 3 rounds of 1,500 requests
  --guard             fail when a first request costs too much beside a plain proxy; about half a minute, for CI
  --requests N        requests of each contender in a round (2500)
  --rounds N          rounds, contenders taking turns in each (8)
  --warm-up N         requests of each contender before the first round (30000)
  --connections N     keep-alive connections, one request at a time on each (64)
  --keys N            keys in the stores before the first request (20000)
  --only A,B          these contenders only
  --profile DIR       write a CPU profile of each Oncegate process to DIR; it makes their figures too high

What a key costs in a large store: npm run bench:growth -- --help`;

export class UsageError extends Error {}

const unhurried = {
  warmUpSeconds: Number.POSITIVE_INFINITY,
  roundsUntilSeconds: Number.POSITIVE_INFINITY,
};

/**
 * With 8,000 the first request was measured at 313 µs and fell on, to 215 µs after 40,000: 30,000 is most of that way. The
 * same for all, or one would be favoured. To be checked on a quiet machine: the ratio must not move with 60,000.
 */
const defaults = {
  table: { requests: 2_500, rounds: 8, warmUpRequests: 30_000, ...unhurried },
  quick: { requests: 1_500, rounds: 3, warmUpRequests: 3_000, ...unhurried },
  // About 11 s of CPU. Where many others want the same processors it is one round after a short warm-up.
  guard: { requests: 300, rounds: 10, warmUpRequests: 6_000, warmUpSeconds: 3, roundsUntilSeconds: 35 },
};

export function parseOptions(args: readonly string[]): Options | 'help' {
  const { values } = parse(args);
  if (values.help) return 'help';
  const guard = values.guard ?? false;
  const usual = defaults[guard ? 'guard' : values.quick ? 'quick' : 'table'];
  const only = values.only?.split(',').filter((name) => name !== '') ?? [];
  if (guard && only.length > 0) throw new UsageError('--guard has contenders of its own: leave out --only');
  return {
    requests: count('requests', values.requests, usual.requests),
    rounds: count('rounds', values.rounds, usual.rounds),
    warmUpRequests: count('warm-up', values['warm-up'], usual.warmUpRequests),
    warmUpSeconds: usual.warmUpSeconds,
    roundsUntilSeconds: usual.roundsUntilSeconds,
    connections: count('connections', values.connections, 64),
    keys: count('keys', values.keys, 20_000),
    only: guard ? ['http-proxy', 'first', 'replay'] : only,
    profileDir: values.profile ?? null,
    guard,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        help: { type: 'boolean', short: 'h' },
        quick: { type: 'boolean' },
        guard: { type: 'boolean' },
        requests: { type: 'string' },
        rounds: { type: 'string' },
        'warm-up': { type: 'string' },
        connections: { type: 'string' },
        keys: { type: 'string' },
        only: { type: 'string' },
        profile: { type: 'string' },
      },
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

export function count(name: string, given: string | undefined, otherwise: number): number {
  if (given === undefined) return otherwise;
  const value = Number(given);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new UsageError(`--${name} is "${given}": give a whole number above 0`);
}
