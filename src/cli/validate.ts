import { compilePolicies } from '../config/config.ts';
import { routeLines } from '../config/describe.ts';
import { loadConfig } from '../config/load.ts';
import { type Args, settingsOf, upstreamWord } from './args.ts';
import type { Command } from './commands.ts';
import { configFile } from './config-file.ts';
import type { Io } from './run.ts';

/** Reads what `serve` would read and starts nothing. Faults are thrown, as there. */
export function validateCommand(command: Command, args: Args, io: Io): number {
  const { file } = configFile(args, io);
  const flags = [...upstreamWord(args), ...settingsOf(command, args)];
  const config = loadConfig({
    ...(file === undefined ? {} : { file }),
    flags,
    env: io.env,
    storeLater: true,
  });
  compilePolicies(config);
  io.stdout.write(`${file ?? 'the configuration'} is valid\n\n`);
  for (const line of routeLines(config)) io.stdout.write(`  ${line}\n`);
  const { warnings } = config;
  if (warnings.length === 0) return 0;
  io.stdout.write(`\n${warnings.length === 1 ? '1 warning' : `${warnings.length} warnings`}\n`);
  for (const warning of warnings) io.stdout.write(`! ${warning}\n`);
  return 0;
}
