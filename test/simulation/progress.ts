import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { emptyTally, type Tally } from './tally.ts';

const root = join(import.meta.dirname, '../..');
const file = join(root, '.cache/simulation/progress.json');

/** What has been played on these sources, over any number of calls. */
export interface Progress {
  /** Of all that is simulated and of what simulates it: other sources begin anew. */
  readonly sources: string;
  readonly tally: Tally;
  nextSeed: number;
  wallSeconds: number;
}

function sourcesDigest(): string {
  const digest = createHash('sha256');
  for (const dir of ['src', 'test/simulation'])
    for (const name of readdirSync(join(root, dir), { recursive: true, encoding: 'utf8' }).toSorted())
      if (name.endsWith('.ts') && !name.endsWith('.test.ts'))
        digest.update(`${dir}/${name}\0`).update(readFileSync(join(root, dir, name)));
  return digest.digest('hex').slice(0, 16);
}

export function loadProgress(isFresh: boolean): Progress {
  const sources = sourcesDigest();
  const none = { sources, tally: emptyTally(), nextSeed: 1, wallSeconds: 0 };
  if (isFresh) return none;
  try {
    const kept = JSON.parse(readFileSync(file, 'utf8')) as Progress;
    return kept.sources === sources ? kept : none;
  } catch {
    return none;
  }
}

export function saveProgress(progress: Progress): void {
  mkdirSync(join(root, '.cache/simulation'), { recursive: true });
  writeFileSync(file, `${JSON.stringify(progress, null, 2)}\n`);
}
