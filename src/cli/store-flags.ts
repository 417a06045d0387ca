import type { Args } from './args.ts';
import { quoted } from './quoted.ts';

/**
 * The flags by which this command line found its store, as a command that is printed for people must carry them; each with a space before.
 * Never the store's URL, which may hold a password.
 */
export function storeFlags({ flags }: Args): string {
  const named = ['config', 'data-dir'].map((name) => [name, flags.get(name)] as const);
  const [config, dir] = named.map(([name, value]) =>
    typeof value === 'string' ? ` --${name} ${quoted(value)}` : '',
  );
  return `${config}${flags.has('embedded') ? ' --embedded' : ''}${dir}`;
}
