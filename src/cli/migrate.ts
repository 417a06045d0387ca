import { nearest } from '../config/did-you-mean.ts';
import { loadConfig } from '../config/load.ts';
import { OncegateError } from '../errors.ts';
import { migrateStatus, migrateUp, migrationSql } from '../store/postgres/migrate.ts';
import { type Args, misuse, settingsOf } from './args.ts';
import type { Command } from './commands.ts';
import { configFile } from './config-file.ts';
import { requireStore } from './require-store.ts';
import type { Io } from './run.ts';

const actions = ['up', 'status', 'sql'] as const;

export async function migrateCommand(command: Command, args: Args, io: Io): Promise<number> {
  const [word] = args.words;
  const action = actions.find((candidate) => candidate === word);
  if (action === undefined) throw misuse(command, actionFault(word));
  if (args.flags.has('accept-identity') && action !== 'up')
    throw misuse(command, '--accept-identity goes with up only');
  if (action === 'sql') {
    io.stdout.write(migrationSql());
    return 0;
  }
  const { url, identity } = target(command, args, io);
  return action === 'up'
    ? await up(url, args.flags.has('accept-identity') ? { acceptIdentity: identity } : {}, io)
    : await status(url, io);
}

function actionFault(word: string | undefined): string {
  if (word === undefined) return 'migrate needs one of up, status, sql';
  const guess = nearest(word, actions);
  return `unknown: migrate ${word}; ${guess === null ? 'write up, status or sql' : `did you mean ${guess}?`}`;
}

function target(command: Command, args: Args, io: Io): { url: string; identity: string } {
  const flags = settingsOf(command, args);
  const config = loadConfig({ ...configFile(args, io), flags, env: io.env });
  const store = requireStore(config.store);
  if (store.kind === 'external') return { url: store.url, identity: config.identity };
  throw new OncegateError(
    'usage',
    'an embedded store migrates by itself when it starts; there is nothing to do',
  );
}

async function up(url: string, options: { acceptIdentity?: string }, io: Io): Promise<number> {
  const { applied, version } = await migrateUp(url, options);
  for (const name of applied) io.stdout.write(`applied ${name}\n`);
  if (options.acceptIdentity !== undefined) io.stdout.write(`identity is now ${options.acceptIdentity}\n`);
  io.stdout.write(`schema version ${version}${applied.length === 0 ? ', nothing was missing' : ''}\n`);
  return 0;
}

async function status(url: string, io: Io): Promise<number> {
  const { version, wanted, pending } = await migrateStatus(url);
  io.stdout.write(`schema version ${version}, this oncegate wants ${wanted}\n`);
  for (const name of pending) io.stdout.write(`missing ${name}\n`);
  if (version === wanted) return 0;
  const hint =
    version < wanted ? 'run oncegate migrate up' : 'a newer oncegate made this schema; use that one';
  throw new OncegateError(
    'schema_mismatch',
    `the schema is too ${version < wanted ? 'old' : 'new'}; ${hint}`,
  );
}
