import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import t from 'tap';
import { commands } from '../../src/cli/commands.ts';
import { fieldsOf } from '../../src/config/fields.ts';
import { configSchema } from '../../src/config/schema.ts';

/** Whatever the pages name is there: files, headings, commands, flags, scripts, settings. */
const root = resolve(import.meta.dirname, '../..');
const pages = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
].map((name) => pageOf(name, readFileSync(join(root, name), 'utf8')));

interface Page {
  readonly name: string;
  readonly links: readonly string[];
  /** Inline code. */
  readonly spans: readonly string[];
  /** Lines of shell blocks, continued ones joined. */
  readonly shell: readonly string[];
  readonly anchors: ReadonlySet<string>;
}

function pageOf(name: string, text: string): Page {
  const fences = [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)];
  const prose = text.replaceAll(/^```[\s\S]*?^```$/gm, '');
  const shell = fences.filter(([, language]) => language === 'sh').map(([, , code = '']) => code);
  return {
    name,
    links: [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target),
    spans: [...prose.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code.replaceAll('\n', ' ')),
    shell: shell.join('').replaceAll('\\\n', ' ').split('\n'),
    anchors: anchorsOf(prose),
  };
}

/** As GitHub makes them: lower case, without marks, spaces to dashes; a second one of a name gets `-1`. */
function anchorsOf(prose: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of prose.matchAll(/^#+ (.+)$/gm)) {
    const base = heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-');
    let anchor = base;
    for (let i = 1; anchors.has(anchor); i++) anchor = `${base}-${i}`;
    anchors.add(anchor);
  }
  return anchors;
}

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object };
const scripts = Object.keys(manifest.scripts);
const settings = new Set(fieldsOf(configSchema).map(({ path }) => path.join('.')));
/** A dotted word that begins like this is a setting; a file's name or an SQL column is not. */
const sections = new Set(
  fieldsOf(configSchema)
    .filter(({ kind, path }) => kind === 'section' && !path.includes('[]'))
    .map(({ path }) => path.at(-1) ?? ''),
);

for (const page of pages) {
  t.test(`${page.name}: links`, async (t) => {
    for (const link of page.links) {
      if (/^[a-z]+:/.test(link)) continue;
      const [path = '', anchor] = link.split('#', 2);
      const target = path === '' ? page.name : join(dirname(page.name), path);
      t.ok(existsSync(join(root, target)), link);
      if (anchor === undefined) continue;
      t.ok(pages.find(({ name }) => name === target)?.anchors.has(anchor), `${link}: heading`);
    }
  });

  t.test(`${page.name}: files`, async (t) => {
    const paths = page.spans.filter((span) =>
      /^(src|test|scripts|docs|helm|bench|migrations)\/[\w./-]+$/.test(span),
    );
    for (const path of paths) t.ok(existsSync(join(root, path)), path);
  });

  t.test(`${page.name}: commands`, async (t) => {
    for (const code of [...page.spans, ...page.shell]) {
      for (const [, name = '', rest = ''] of code.matchAll(/\boncegate(?:-embedded)? ([a-z]+)([^;&|>]*)/g)) {
        t.equal(faultOf(name, rest), null, code);
      }
      for (const [, script = ''] of code.matchAll(/\bnpm run (?:--silent )?([\w:]+)/g)) {
        t.ok(scripts.includes(script), code);
      }
    }
  });

  // There `store.reserve` is code.
  if (page.name === 'ARCHITECTURE.md' || page.name === 'CONTRIBUTING.md') continue;
  t.test(`${page.name}: settings`, async (t) => {
    for (const span of page.spans) {
      const [, path = ''] = /^([a-zA-Z]+\.[a-zA-Z.]+)(?::|$)/.exec(span) ?? [];
      if (!sections.has(path.split('.')[0] ?? '')) continue;
      t.ok(settings.has(path) || settings.has(`defaults.${path}`), span);
    }
  });
}

/** What is wrong with `oncegate NAME REST`, or null. */
function faultOf(name: string, rest: string): string | null {
  const command = commands.find((candidate) => candidate.name === name);
  if (command === undefined) return `no command ${name}`;
  const known = ['help', ...command.flags.map((flag) => flag.name)];
  for (const [, flag = ''] of rest.matchAll(/--([\w-]+)/g))
    if (!known.includes(flag)) return `no flag --${flag}`;
  const word = /^ ([a-z]+)\b(?!:)/.exec(rest)?.[1];
  if (word === undefined || command.maxWords === 0) return null;
  const isKnown = command.usage.split(/\W/).includes(word) || commands.some((other) => other.name === word);
  return isKnown ? null : `${name} knows no ${word}`;
}

t.test('the check itself can fail', async (t) => {
  t.equal(faultOf('kyes', ' list'), 'no command kyes');
  t.equal(faultOf('serve', ' http://a --embeded'), 'no flag --embeded');
  t.equal(faultOf('migrate', ' down'), 'migrate knows no down');
  t.equal(faultOf('serve', ' http://127.0.0.1:3000 --embedded'), null);
  const page = pageOf('a.md', '# A `b` c\n## key_missing\n## usage (exit 2)\n## A b c\n[x](b.md#y)\n');
  t.strictSame([...page.anchors], ['a-b-c', 'key_missing', 'usage-exit-2', 'a-b-c-1']);
  t.strictSame(page.links, ['b.md#y']);
});
