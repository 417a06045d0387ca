import t from 'tap';
import { type Ending, type Outcome, type PresetName, presetNames, settle } from '../../src/core/settle.ts';

const error = new Error('broken');

function answered(status: number, facts: Partial<Extract<Ending, { kind: 'answered' }>> = {}): Ending {
  return { kind: 'answered', status, hasRetryAfter: false, upstreamSays: null, closeFramed: false, ...facts };
}

const special = [401, 403, 407, 408, 421, 425, 429, 431];

/** PRODUCT.md, outcome table: the columns in order. A status belongs to the first column that has it. */
const columns: readonly {
  readonly has: (status: number) => boolean;
  readonly row: Record<PresetName, Cell>;
}[] = [
  { has: (status) => status < 400, row: { standard: 'store', stripe: 'store', payments: 'store' } },
  {
    has: (status) => special.includes(status),
    row: { standard: 'release', stripe: { release: [401, 429], others: 'store' }, payments: 'release' },
  },
  { has: (status) => status < 500, row: { standard: 'store', stripe: 'store', payments: 'store' } },
  {
    has: (status) => status === 503,
    row: { standard: { retryAfter: 'release', without: 'unknown' }, stripe: 'store', payments: 'unknown' },
  },
  {
    has: (status) => status === 502 || status === 504,
    row: { standard: 'unknown', stripe: 'store', payments: 'unknown' },
  },
  { has: () => true, row: { standard: 'release', stripe: 'store', payments: 'unknown' } },
];

type Cell =
  | Outcome
  | { readonly release: readonly number[]; readonly others: Outcome }
  | { readonly retryAfter: Outcome; readonly without: Outcome };

function expected(preset: PresetName, status: number, hasRetryAfter: boolean): Outcome {
  const cell = columns.find((column) => column.has(status))?.row[preset] ?? 'unknown';
  if (typeof cell === 'string') return cell;
  if ('release' in cell) return cell.release.includes(status) ? 'release' : cell.others;
  return hasRetryAfter ? cell.retryAfter : cell.without;
}

const statuses = Array.from({ length: 400 }, (_, i) => 200 + i);

for (const preset of presetNames) {
  t.test(`preset ${preset}: every status, with and without Retry-After`, (t) => {
    const table = { preset, overrides: {} };
    for (const hasRetryAfter of [false, true]) {
      const actual = statuses.map(
        (status) => `${status} ${settle(answered(status, { hasRetryAfter }), table)}`,
      );
      t.strictSame(
        actual,
        statuses.map((status) => `${status} ${expected(preset, status, hasRetryAfter)}`),
      );
    }
    t.end();
  });

  t.test(`preset ${preset}: without a complete answer`, (t) => {
    const table = { preset, overrides: { 200: 'store', 502: 'store' } } as const;
    t.equal(settle({ kind: 'not_started', error }, table), 'release');
    for (const status of [null, 200, 502]) {
      for (const timedOut of [true, false])
        t.equal(settle({ kind: 'broken', status, timedOut, error }, table), 'unknown');
    }
    t.end();
  });
}

t.test('a route overrides single statuses', (t) => {
  const table = { preset: 'payments', overrides: { 409: 'release', 500: 'store', 200: 'unknown' } } as const;
  t.equal(settle(answered(409), table), 'release');
  t.equal(settle(answered(500), table), 'store');
  t.equal(settle(answered(200), table), 'unknown');
  t.equal(settle(answered(410), table), 'store');
  t.end();
});

t.test('the upstream overrules preset and overrides; a word we do not know is none', (t) => {
  const table = { preset: 'standard', overrides: { 409: 'store' } } as const;
  const says = (upstreamSays: string, status: number) => settle(answered(status, { upstreamSays }), table);
  t.equal(says('executed', 502), 'store');
  t.equal(says(' Executed ', 502), 'store');
  t.equal(says('not-executed', 409), 'release');
  t.equal(says('unknown', 200), 'unknown');
  for (const word of ['', 'yes', 'not executed', 'executed, unknown']) {
    t.equal(says(word, 409), 'store', word);
    t.equal(says(word, 502), 'unknown', word);
  }
  t.end();
});

t.test(
  'a body that only a close ended: to payments it is no answer, whatever the table or its head says',
  (t) => {
    const overrides = { 200: 'store', 409: 'release', 500: 'store' } as const;
    for (const preset of presetNames) {
      for (const status of statuses) {
        for (const upstreamSays of [null, 'executed', 'not-executed', 'unknown']) {
          for (const table of [
            { preset, overrides: {} },
            { preset, overrides },
          ]) {
            const framed = settle(answered(status, { upstreamSays }), table);
            const actual = settle(answered(status, { upstreamSays, closeFramed: true }), table);
            const wanted = preset === 'payments' ? 'unknown' : framed;
            if (actual !== wanted) t.fail(`${preset} ${status} ${upstreamSays}: ${actual}`);
          }
        }
      }
      t.pass(preset);
    }
    t.end();
  },
);
