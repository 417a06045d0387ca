import { duration } from '../config/duration.ts';
import { OncegateError } from '../errors.ts';
import type { OperatorSettings } from '../operator/settings.ts';
import type { OperatorStore } from '../store/operator.ts';
import { type Args, misuse } from './args.ts';
import type { Command } from './commands.ts';
import type { Io } from './run.ts';

/** One command line of `oncegate keys`. */
export interface KeysCall {
  readonly command: Command;
  readonly args: Args;
  readonly io: Io;
  readonly settings: OperatorSettings;
}

/** What is left to do once all flags are good: to the exit code. */
export type Ready = (store: OperatorStore) => Promise<number>;

export function flagText({ args }: KeysCall, name: string): string | null {
  const value = args.flags.get(name);
  return typeof value === 'string' ? value : null;
}

export function hasFlag({ args }: KeysCall, name: string): boolean {
  return args.flags.has(name);
}

export function fault({ command }: KeysCall, text: string): OncegateError {
  return misuse(command, text);
}

/** null: not given. */
export function flagDurationMs(call: KeysCall, name: string): number | null {
  const text = flagText(call, name);
  if (text === null) return null;
  if (!duration.pattern.test(text)) throw fault(call, `--${name} ${text}: ${duration.fault(text)}`);
  return duration.parse(text);
}

export function flagNumber(
  call: KeysCall,
  name: string,
  bounds: readonly [least: number, most: number],
): number | null {
  const text = flagText(call, name);
  if (text === null) return null;
  const value = Number(text);
  const [least, most] = bounds;
  if (/^\d+$/.test(text) && value >= least && value <= most) return value;
  throw fault(call, `--${name} ${text}: write a whole number from ${least} to ${most}`);
}

export function say({ io }: KeysCall, text: string): void {
  io.stdout.write(`${text}\n`);
}

/** Exit 1: foreseen, and no fault of the command line. */
export function notDone({ io }: KeysCall, text: string): 1 {
  io.stderr.write(`oncegate: ${text}\n`);
  return 1;
}
