import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { root } from './child.ts';

/** Oncegate, and what runs beside it: each on Node alone, without a compiler in the process. */
export function build(): void {
  runScript('scripts/setup.mjs', 'build');
  runScript('node_modules/.bin/tsc', '-p', 'bench/tsconfig.json');
}

function runScript(script: string, ...args: string[]): void {
  const { status } = spawnSync(process.execPath, [join(root, script), ...args], {
    cwd: root,
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error(`${script} failed`);
}
