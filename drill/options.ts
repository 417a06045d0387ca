import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';

export interface Options {
  /** null: as many as the drill takes to mean something. */
  readonly rounds: number | null;
  readonly seconds: number | null;
  readonly requests: number | null;
  readonly seed: number;
  readonly replication: 'sync' | 'async';
  readonly isShort: boolean;
}

export class UsageError extends Error {}

export interface CommandLine {
  readonly name: string;
  readonly options: Options;
}

export function parseOptions(args: readonly string[]): CommandLine | 'help' {
  const { values, positionals } = parse(args);
  const [name, extra] = positionals;
  if (values.help || name === undefined) return 'help';
  if (extra !== undefined) throw new UsageError(`one word too many: ${extra}`);
  if (values.sync && values.async) throw new UsageError('--sync or --async, not both');
  return {
    name,
    options: {
      rounds: count('rounds', values.rounds),
      seconds: count('seconds', values.seconds),
      requests: count('requests', values.requests),
      seed: count('seed', values.seed) ?? randomInt(1, 2 ** 31),
      replication: values.async ? 'async' : 'sync',
      isShort: values.short ?? false,
    },
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        help: { type: 'boolean', short: 'h' },
        rounds: { type: 'string' },
        seconds: { type: 'string' },
        requests: { type: 'string' },
        seed: { type: 'string' },
        sync: { type: 'boolean' },
        async: { type: 'boolean' },
        short: { type: 'boolean' },
      },
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function count(name: string, given: string | undefined): number | null {
  if (given === undefined) return null;
  const value = Number(given);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new UsageError(`--${name} is "${given}": give a whole number above 0`);
}
