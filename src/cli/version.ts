import { readFileSync } from 'node:fs';
import type { Args } from './args.ts';
import type { Io } from './run.ts';

export function versionCommand(args: Args, io: Io): number {
  // The same place from src/cli and from dist/cli.
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  const text = args.flags.has('json')
    ? JSON.stringify({ version, node: process.version })
    : `oncegate ${version}`;
  io.stdout.write(`${text}\n`);
  return 0;
}
