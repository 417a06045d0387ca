import { parseArgs } from 'node:util';
import { coreActions, moreActions, points } from './points.ts';

export interface Options {
  readonly runs: number;
  /** null: that of the results so far, or any. */
  readonly seed: number | null;
  readonly lanes: number;
  readonly isShort: boolean;
  readonly isFresh: boolean;
  readonly point?: string;
  readonly action?: string;
}

export class UsageError extends Error {}

const longRuns = 10_000;
/** Most of a run is waiting for a lease to end: on two cores this keeps them busy. */
const usualLanes = 12;

export const usage = `usage: npm run torture -- [options]

  --short        every point with every action once, with results of its own, for CI
  --runs N       so many faulted runs more (${longRuns}); stopped with Ctrl-C, the next call goes on
  --fresh        forget the results so far
  --seed N       the same choices again
  --lanes N      runs at a time (${usualLanes})
  --point NAME   only this one: ${points.map(({ name }) => name).join(' | ')}
  --action NAME  only this one: ${[...coreActions, ...moreActions].join(' | ')}`;

/** null: only help was asked for. */
export function parseOptions(args: readonly string[]): Options | null {
  const { values } = parse(args);
  if (values.help) return null;
  const isTry = values.point !== undefined || values.action !== undefined;
  return {
    runs: count('runs', values.runs) ?? (values.short || isTry ? 0 : longRuns),
    seed: count('seed', values.seed),
    lanes: count('lanes', values.lanes) ?? usualLanes,
    isShort: values.short ?? false,
    isFresh: values.fresh ?? false,
    ...known(
      'point',
      values.point,
      points.map(({ name }) => name),
    ),
    ...known('action', values.action, [...coreActions, ...moreActions]),
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        help: { type: 'boolean', short: 'h' },
        short: { type: 'boolean' },
        fresh: { type: 'boolean' },
        runs: { type: 'string' },
        seed: { type: 'string' },
        lanes: { type: 'string' },
        point: { type: 'string' },
        action: { type: 'string' },
      },
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function known(
  name: 'point' | 'action',
  given: string | undefined,
  names: readonly string[],
): { point?: string; action?: string } {
  if (given === undefined) return {};
  if (names.includes(given)) return { [name]: given };
  throw new UsageError(`there is no ${name} "${given}"`);
}

function count(name: string, given: string | undefined): number | null {
  if (given === undefined) return null;
  const value = Number(given);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new UsageError(`--${name} is "${given}": give a whole number above 0`);
}
