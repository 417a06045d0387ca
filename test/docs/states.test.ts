import { readFileSync } from 'node:fs';
import t from 'tap';
import { moves } from '../../src/core/record.ts';
import { presetNames, settle } from '../../src/core/settle.ts';
import { migrateUp } from '../../src/store/postgres/migrate.ts';
import { query, testDatabase } from '../helpers/postgres.ts';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const page = read('docs/how-it-works.md');

const wanted = moves.map(({ from, to, by }) => `${from} ${to} ${by.join(', ')}`);

t.test('the diagram has every legal move and who makes it, and no other', async (t) => {
  const arrows = page.matchAll(/^ +(\w+) --> (\w+): (.+)$/gm);
  t.strictSame(
    [...arrows].map(([, from, to, by]) => `${from} ${to} ${by}`),
    wanted,
  );
  const reaped = [...page.matchAll(/^ +(\w+) --> \[\*\]: reaper$/gm)].map(([, state]) => state);
  t.strictSame(reaped, ['completed', 'failed_retryable'], 'what expires');
});

t.test('so has the list', async (t) => {
  const rows = page.matchAll(/^\| `(\w+)` \| `(\w+)` \| ([^|]+) \| [^|]{4,} \|$/gm);
  t.strictSame(
    [...rows].map(([, from, to, by]) => `${from} ${to} ${by}`),
    wanted,
  );
});

/** The statuses that each column of the outcome table speaks of. */
const columns: readonly (readonly number[])[] = [
  [200, 201, 202, 204, 301, 303, 304],
  [400, 402, 404, 405, 409, 410, 412, 413, 415, 422, 451],
  [401, 403, 407, 408, 421, 425, 429, 431],
  [500, 501, 505, 507, 511],
  [503],
  [502, 504],
];

function outcomeOf(cell: string, status: number, hasRetryAfter: boolean): string {
  const [, condition = '', then = '', otherwise = ''] = /^(.+): (\w+), else (\w+)$/.exec(cell) ?? [];
  if (condition === '') return cell;
  const holds =
    condition === 'with Retry-After' ? hasRetryAfter : condition.split(' ').includes(String(status));
  return holds ? then : otherwise;
}

t.test('the outcome table is that of the code', async (t) => {
  const table = read('docs/guarantees.md');
  for (const preset of presetNames) {
    const row = new RegExp(`^\\| \`${preset}\`[^|]* \\| (.+) \\|$`, 'm').exec(table)?.[1] ?? '';
    const cells = row.split(' | ');
    t.equal(cells.length, columns.length, preset);
    for (const [i, statuses] of columns.entries()) {
      for (const status of statuses) {
        for (const hasRetryAfter of [true, false]) {
          const ending = {
            kind: 'answered' as const,
            status,
            hasRetryAfter,
            upstreamSays: null,
            closeFramed: false,
          };
          const written = outcomeOf(cells[i] ?? '', status, hasRetryAfter);
          t.equal(settle(ending, { preset, overrides: {} }), written, `${preset} ${status}`);
        }
      }
    }
  }
});

t.test('every column of a record is explained', async (t) => {
  const { url } = await testDatabase(t);
  await migrateUp(url);
  const columns = await query(
    url,
    `SELECT column_name AS name FROM information_schema.columns
WHERE table_schema = 'oncegate' AND table_name = 'record'`,
  );
  const [, section = ''] = page.split('## What is stored\n');
  const rows = section.split('\n## ')[0]?.match(/^\| `.*?\|/gm) ?? [];
  const explained = rows.flatMap((row) => [...row.matchAll(/`(\w+)`/g)].map(([, name]) => name));
  t.strictSame(new Set(explained), new Set(columns.map(({ name }) => name)));
});
