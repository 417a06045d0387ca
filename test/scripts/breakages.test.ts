import { readFileSync } from 'node:fs';
import t from 'tap';

interface Edit {
  readonly file: string;
  readonly find: string | RegExp;
  readonly replace: string;
}

interface Breakage extends Edit {
  readonly rule: string;
  readonly more?: readonly Edit[];
  readonly alsoBy?: readonly { readonly more?: readonly Edit[] }[];
}

// @ts-expect-error: a script, without types
const { breakages } = (await import('../breakages.mjs')) as { breakages: readonly Breakage[] };

/** `npm run breakages` takes too long for every change; that it still has something to break is seen here. */
t.test('each breakage finds what it breaks', async (t) => {
  for (const { rule, more = [], alsoBy = [], ...first } of breakages) {
    const texts = new Map<string, string>();
    for (const { file, find, replace } of [first, ...more, ...alsoBy.flatMap((also) => also.more ?? [])]) {
      const text = texts.get(file) ?? readFileSync(file, 'utf8');
      const broken = text.replace(find, () => replace);
      if (broken === text) t.fail(`${rule}: ${file} has no ${find}`);
      texts.set(file, broken);
    }
  }
  t.ok(breakages.length > 100);
});
