import { basename, relative } from 'node:path';
import { commands } from './commands.ts';

const names = commands.map(({ name }) => name).join('|');
const printed = new RegExp(`\\boncegate (?=(?:${names})\\b|<command>)`, 'g');

/** How this process was started, as a person would type it again: `oncegate`, `npx oncegate` or `node dist/cli/oncegate.js`. */
export function commandName(script: string, cwd: string): string {
  const name = basename(script);
  if (name === 'oncegate.ts') return `node --import=tsx ${fromHere(script, cwd)}`;
  if (name === 'oncegate.js') return `node ${fromHere(script, cwd)}`;
  return /[\\/]node_modules[\\/]\.bin[\\/]/.test(script) ? 'npx oncegate' : 'oncegate';
}

/** Every command that the text tells people to type, in the form in which it works for them. */
export function asStarted(text: string, name: string): string {
  return name === 'oncegate' ? text : text.replaceAll(printed, () => `${name} `);
}

function fromHere(script: string, cwd: string): string {
  const path = relative(cwd, script);
  return path.startsWith('..') ? script : path;
}
