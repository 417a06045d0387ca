import { statSync } from 'node:fs';
import type { Args } from './args.ts';
import type { Io } from './run.ts';

/** Where the image expects a mounted file, so that no command needs to be told. */
const usualFile = '/etc/oncegate/config.yaml';

/** The config file of this command line: the flag's, the variable's, or the usual one where it is there. */
export function configFile(args: Args, { env }: Io): { readonly file?: string } {
  const flag = args.flags.get('config');
  if (typeof flag === 'string') return { file: flag };
  if (env['ONCEGATE_CONFIG']) return { file: env['ONCEGATE_CONFIG'] };
  return isThere(usualFile) ? { file: usualFile } : {};
}

/** One that is there and may not be looked at counts: reading it says why, and to go on without it would be a surprise. */
function isThere(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}
