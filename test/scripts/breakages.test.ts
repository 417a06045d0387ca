import t from 'tap';

interface Edit {
  readonly in?: string;
  readonly file?: string;
  readonly find: string | RegExp;
  readonly replace: string;
}

interface Breakage extends Edit {
  readonly rule: string;
  readonly more?: readonly Edit[];
  readonly alsoBy?: readonly { readonly more?: readonly Edit[] }[];
}

interface Places {
  readSources(root: string): Map<string, string>;
  applyEdit(texts: Map<string, string>, edit: Edit): { readonly file?: string; readonly fault?: string };
}

// @ts-expect-error: a script, without types
const { breakages } = (await import('../breakages.mjs')) as { breakages: readonly Breakage[] };
// @ts-expect-error: a script, without types
const { applyEdit, readSources } = (await import('../../scripts/breakage-place.mjs')) as Places;

/** `npm run breakages` takes too long for every change; that it still has something to break is seen here. */
t.test('each breakage finds what it breaks', async (t) => {
  const sources = readSources('.');
  for (const { rule, more = [], alsoBy = [], ...first } of breakages) {
    const texts = new Map(sources);
    for (const edit of [first, ...more, ...alsoBy.flatMap((also) => also.more ?? [])]) {
      const { fault } = applyEdit(texts, edit);
      if (fault !== undefined) t.fail(`${rule}: ${fault}`);
    }
  }
  t.ok(breakages.length > 100);
});

t.test('a place is found by name, wherever it stands and however it is formatted', async (t) => {
  const text =
    'export class Door {\n  open(key: Key): void {\n    if (\n      !fits(\n        key,\n      )\n    ) return;\n  }\n}\n';
  const other = 'function open(key: Key): void {\n  if (!fits(key)) return;\n}\n';
  const edit = { in: 'Door.open', find: 'if (!fits(key)) return;', replace: '' };
  const texts = new Map([
    ['a.ts', other],
    ['b/c.ts', text],
  ]);
  t.same(applyEdit(texts, edit), { file: 'b/c.ts' });
  t.notMatch(texts.get('b/c.ts'), 'fits');
  t.equal(texts.get('a.ts'), other);
  t.match(applyEdit(texts, edit), { fault: /Door.open has no/ });
  const twice = new Map([
    ['a.ts', other],
    ['b.ts', other],
  ]);
  t.match(applyEdit(twice, { ...edit, in: 'open' }), { fault: /stands 2 times in open/ });
});
