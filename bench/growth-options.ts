import { parseArgs } from 'node:util';
import { count, UsageError } from './options.ts';

export interface GrowthOptions {
  /** Stores of these sizes, smallest first. */
  readonly sizes: readonly number[];
  readonly requests: number;
  readonly rounds: number;
  readonly warmUpRequests: number;
  readonly connections: number;
  /** That expire at once, at most; never more than the store holds. */
  readonly expired: number;
  readonly plotFile: string | null;
}

export const growthUsage = `usage: npm run bench:growth -- [options]

  --keys A,B,…        sizes of the stores (10000,1000000,10000000: wants 20 GB of free disk, and patience)
  --requests N        first requests on each store in a round (2500)
  --rounds N          rounds, stores taking turns in each (8)
  --warm-up N         requests to each store before the first round (30000)
  --connections N     keep-alive connections, one request at a time on each (64)
  --expired N         keys that expire at once for the reaper, at most (1000000)
  --plot FILE         write the curve as SVG to FILE`;

export function parseGrowthOptions(args: readonly string[]): GrowthOptions | 'help' {
  const { values } = parse(args);
  if (values.help) return 'help';
  const sizes = (values.keys ?? '10000,1000000,10000000').split(',').map((text) => count('keys', text, 0));
  return {
    sizes: [...new Set(sizes)].sort((a, b) => a - b),
    requests: count('requests', values.requests, 2_500),
    rounds: count('rounds', values.rounds, 8),
    warmUpRequests: count('warm-up', values['warm-up'], 30_000),
    connections: count('connections', values.connections, 64),
    expired: count('expired', values.expired, 1_000_000),
    plotFile: values.plot ?? null,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        help: { type: 'boolean', short: 'h' },
        keys: { type: 'string' },
        requests: { type: 'string' },
        rounds: { type: 'string' },
        'warm-up': { type: 'string' },
        connections: { type: 'string' },
        expired: { type: 'string' },
        plot: { type: 'string' },
      },
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
