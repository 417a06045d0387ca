import { mkdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { root } from './child.ts';

/** Gives where it is, from here. */
export function save<Run extends { readonly at: string }>(name: string, run: Run): string {
  const dir = join(root, '.cache/bench');
  mkdirSync(dir, { recursive: true });
  const file = join(dir, `${name}-${run.at.replaceAll(':', '-')}.json`);
  writeFileSync(file, `${JSON.stringify(run, null, 2)}\n`);
  return relative(process.cwd(), file);
}
