import { asError, OncegateError } from '../errors.ts';
import { type Args, findCommand, parseCommand } from './args.ts';
import type { Command } from './commands.ts';
import { commandHelp, overview } from './help.ts';

/** What a command may touch of the process. */
export interface Io {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
  readonly env: NodeJS.ProcessEnv;
  /** Absent: nobody can be asked. */
  readonly stdin?: NodeJS.ReadableStream & { readonly isTTY?: boolean };
}

/** The whole command line, to its exit code. Never rejects. */
export async function run(argv: readonly string[], io: Io): Promise<number> {
  try {
    return await dispatch(argv, io);
  } catch (thrown) {
    return report(thrown, io);
  }
}

async function dispatch(argv: readonly string[], io: Io): Promise<number> {
  const [name, ...rest] = argv;
  if (name === undefined || name === '--help' || name === '-h') {
    io.stdout.write(overview());
    return 0;
  }
  const command = findCommand(name === '--version' ? 'version' : name);
  // Before the flags are checked: whoever asks for help may not know them.
  if (rest.includes('--help') || rest.includes('-h')) {
    io.stdout.write(commandHelp(command));
    return 0;
  }
  return await execute(command, parseCommand(command, rest), io);
}

/** Each command is loaded only when it is called, so that `help` and `version` answer at once. */
async function execute(command: Command, args: Args, io: Io): Promise<number> {
  switch (command.name) {
    case 'serve':
      return (await import('./serve.ts')).serveCommand(command, args, io);
    case 'demo':
      return (await import('./demo.ts')).demoCommand(command, args, io);
    case 'migrate':
      return (await import('./migrate.ts')).migrateCommand(command, args, io);
    case 'keys':
      return (await import('./keys.ts')).keysCommand(command, args, io);
    case 'validate':
      return (await import('./validate.ts')).validateCommand(command, args, io);
    case 'doctor':
      return (await import('./doctor.ts')).doctorCommand(command, args, io);
    case 'healthcheck':
      return (await import('./healthcheck.ts')).healthcheckCommand(command, args, io);
    case 'schema':
      return (await import('./schema.ts')).schemaCommand(io);
    case 'version':
      return (await import('./version.ts')).versionCommand(args, io);
    default:
      io.stdout.write(args.words[0] === undefined ? overview() : commandHelp(findCommand(args.words[0])));
      return 0;
  }
}

/** What we foresaw is one message; anything else is our fault and shows its stack. */
function report(thrown: unknown, io: Io): number {
  if (thrown instanceof OncegateError) {
    io.stderr.write(`oncegate: ${thrown.message}\n`);
    return thrown.exitCode;
  }
  const error = asError(thrown);
  io.stderr.write(
    `oncegate: ${error.message}\nThis is a bug in oncegate; please report it with these lines:\n${error.stack ?? ''}\n`,
  );
  return 1;
}
