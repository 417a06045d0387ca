import { existsSync, readFileSync } from 'node:fs';
import t from 'tap';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

/** A claim, a file, the name of a test in it. */
const rows = [...read('docs/verification.md').matchAll(/^\| (.+?) \| (test\/\S+) \| (.+?) \|$/gm)].map(
  ([, claim, file, name]) => ({ claim: claim as string, file: file as string, name: name as string }),
);

t.ok(rows.length > 50, 'the tables are read');

for (const { claim, file, name } of rows) {
  t.test(claim, async (t) => {
    t.ok(existsSync(new URL(`../../${file}`, import.meta.url)), file);
    // As a property of a table of tests it needs no quotes, if it is one word.
    t.ok(read(file).includes(`'${name}'`), `${file} has "${name}"`);
  });
}
