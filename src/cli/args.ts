import { parseArgs } from 'node:util';
import { suggestion } from '../config/did-you-mean.ts';
import type { Setting } from '../config/environment.ts';
import { OncegateError } from '../errors.ts';
import { type Command, commands, type Flag } from './commands.ts';

export interface Args {
  readonly words: readonly string[];
  /** By flag name; true for a flag that stands alone. */
  readonly flags: ReadonlyMap<string, string | true>;
  /** Values of the flags that may be given several times, in order. */
  readonly lists: ReadonlyMap<string, readonly string[]>;
}

export function findCommand(name: string): Command {
  const command = commands.find((candidate) => candidate.name === name);
  if (command !== undefined) return command;
  const names = commands.map((candidate) => candidate.name);
  throw new OncegateError('usage', `unknown command ${name}; ${suggestion(name, names)}\nSee: oncegate help`);
}

/** Checks by hand what parseArgs would check, for it knows no suggestions. */
export function parseCommand(command: Command, argv: readonly string[]): Args {
  const known: readonly Flag[] = [...command.flags, { name: 'help', text: '' }];
  const { tokens } = parseArgs({
    args: [...argv],
    options: Object.fromEntries(
      known.map(({ name, value }) => [name, { type: value === undefined ? 'boolean' : 'string' }]),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const words: string[] = [];
  const flags = new Map<string, string | true>();
  const lists = new Map<string, string[]>();
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value);
    if (token.kind !== 'option') continue;
    const flag = known.find(({ name }) => name === token.name);
    if (flag === undefined) {
      throw misuse(
        command,
        `unknown flag ${token.rawName}; ${suggestion(
          token.rawName,
          known.map(({ name }) => `--${name}`),
        )}`,
      );
    }
    if (flags.has(flag.name) && !flag.repeats)
      throw misuse(command, `${token.rawName} is given twice; keep one`);
    const value = valueOf(command, flag, token);
    flags.set(flag.name, value);
    if (typeof value === 'string') lists.set(flag.name, [...(lists.get(flag.name) ?? []), value]);
  }
  const extra = words[command.maxWords];
  if (extra !== undefined) throw misuse(command, `one word too many: ${extra}`);
  return { words, flags, lists };
}

function valueOf(
  command: Command,
  flag: Flag,
  token: { value?: string | undefined; inlineValue?: boolean | undefined },
): string | true {
  if (flag.value === undefined) {
    if (token.value !== undefined)
      throw misuse(command, `--${flag.name} takes no value; write --${flag.name}`);
    return true;
  }
  // `--config --listen x` forgot a file; a value that does begin with a dash is written with "=".
  const isForgotten =
    token.value === undefined || token.value === '' || (!token.inlineValue && token.value.startsWith('-'));
  if (isForgotten) throw misuse(command, `--${flag.name} needs a value; write --${flag.name} ${flag.value}`);
  return token.value ?? true;
}

export function misuse(command: Command, text: string): OncegateError {
  return new OncegateError('usage', `${text}\nSee: oncegate help ${command.name}`);
}

/** The settings that the flags of this command line make. */
export function settingsOf(command: Command, args: Args): Setting[] {
  return command.flags.flatMap(({ name, path }) => {
    const value = args.flags.get(name);
    return path === undefined || value === undefined ? [] : [{ from: `--${name}`, path, value }];
  });
}

/** The URL that serve, validate and doctor take as their word. */
export function upstreamWord({ words: [url] }: Args): Setting[] {
  return url === undefined ? [] : [{ from: 'URL', path: ['upstream', 'url'], value: url }];
}
