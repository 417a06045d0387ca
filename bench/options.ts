import { parseArgs } from 'node:util';

export interface Options {
  /** Of one turn of one contender. */
  readonly requests: number;
  readonly rounds: number;
  /** Before the first that counts: the code must be compiled by then, and connections open. */
  readonly warmUpRequests: number;
  readonly connections: number;
  /** In each store before the first request. */
  readonly keys: number;
  /** Names of contenders; empty: all. */
  readonly only: readonly string[];
  /** Where to put a CPU profile of each Oncegate process; null: none. */
  readonly profileDir: string | null;
}

export const usage = `usage: npm run bench -- [options]

  --quick             a first impression: 3 rounds of 1,500 requests
  --requests N        requests of each contender in a round (2500)
  --rounds N          rounds, contenders taking turns in each (8)
  --connections N     keep-alive connections, one request at a time on each (64)
  --keys N            keys in the stores before the first request (20000)
  --only A,B          these contenders only
  --profile DIR       write a CPU profile of each Oncegate process to DIR; it makes their figures too high`;

export class UsageError extends Error {}

export function parseOptions(args: readonly string[]): Options | 'help' {
  const { values } = parse(args);
  if (values.help) return 'help';
  const quick = values.quick ?? false;
  return {
    requests: count('requests', values.requests, quick ? 1_500 : 2_500),
    rounds: count('rounds', values.rounds, quick ? 3 : 8),
    warmUpRequests: quick ? 3_000 : 8_000,
    connections: count('connections', values.connections, 64),
    keys: count('keys', values.keys, 20_000),
    only: values.only?.split(',').filter((name) => name !== '') ?? [],
    profileDir: values.profile ?? null,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        help: { type: 'boolean', short: 'h' },
        quick: { type: 'boolean' },
        requests: { type: 'string' },
        rounds: { type: 'string' },
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

function count(name: string, given: string | undefined, otherwise: number): number {
  if (given === undefined) return otherwise;
  const value = Number(given);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new UsageError(`--${name} is "${given}": give a whole number above 0`);
}
