import { asError, OncegateError } from '../errors.ts';
import { findCommand, parseCommand } from './args.ts';
import { asStarted, commandName } from './as-started.ts';
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
  const named = naming(io);
  try {
    const manual = manualFor(argv);
    if (manual === null) return await execute(argv, named);
    named.stdout.write(manual);
    return 0;
  } catch (thrown) {
    return report(thrown, named);
  }
}

/** The same streams, on which the commands to type carry the name by which this process was started. */
function naming(io: Io): Io {
  const name = commandName(process.argv[1] ?? '', process.cwd());
  const spoken = (stream: Io['stdout']): PropertyDescriptor => ({
    value: Object.create(stream, {
      write: { value: (text: string) => stream.write(asStarted(text, name)) },
    }) as Io['stdout'],
  });
  // Not a copy: reading `process.stdin` opens it.
  return Object.create(io, { stdout: spoken(io.stdout), stderr: spoken(io.stderr) }) as Io;
}

/** null: no help is asked for. */
function manualFor([name, ...rest]: readonly string[]): string | null {
  if (name === undefined || name === '--help' || name === '-h') return overview();
  const command = commandCalled(name);
  // Before the flags are checked: whoever asks for help may not know them.
  if (rest.includes('--help') || rest.includes('-h')) return commandHelp(command);
  if (command.name !== 'help') return null;
  const [topic] = parseCommand(command, rest).words;
  return topic === undefined ? overview() : commandHelp(findCommand(topic));
}

function commandCalled(name: string): Command {
  return findCommand(name === '--version' ? 'version' : name);
}

/** Each command is loaded only when it is called, so that the others answer at once. */
async function execute([name = '', ...rest]: readonly string[], io: Io): Promise<number> {
  const command = commandCalled(name);
  const args = parseCommand(command, rest);
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
    default:
      return (await import('./version.ts')).versionCommand(args, io);
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
