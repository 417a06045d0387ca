import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import t from 'tap';

/** The versions that docs/leaned-on.md was read in are those that are pinned and installed: an update has to read it again. */
const root = resolve(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const page = read('docs/leaned-on.md');
const named = new Map([...page.matchAll(/^## (\S+) (\d\S*)$/gm)].map(([, name, version]) => [name, version]));

interface Manifest {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
}

const { dependencies } = JSON.parse(read('package.json')) as Manifest;
const lock = JSON.parse(read('package-lock.json')) as { packages: Readonly<Record<string, Manifest>> };

t.test('what the page names is pinned, and what is pinned is named', async (t) => {
  const pinned = Object.entries(dependencies).filter(([, range]) => /^\d/.test(range));
  t.ok(pinned.length > 0);
  for (const [name, version] of pinned) t.equal(named.get(name), version, name);
  for (const name of ['undici', 'pg', 'pino', 'fastify', '@fastify/http-proxy'])
    t.match(dependencies[name], /^\d+\.\d+\.\d+$/, `${name}: exactly one version`);
  for (const [name, version] of named) {
    const range = dependencies[name as string];
    if (range !== undefined) t.equal(range, version, `package.json: ${name}`);
  }
});

t.test('the lock file and what is installed have these versions', async (t) => {
  t.strictSame(lock.packages['']?.dependencies, dependencies, 'the lock file is that of package.json');
  for (const [name, version] of named) {
    t.equal(lock.packages[`node_modules/${name}`]?.version, version, `package-lock.json: ${name}`);
    const installed = JSON.parse(read(`node_modules/${name}/package.json`)) as Manifest;
    t.equal(installed.version, version, `node_modules: ${name}`);
  }
});

t.test('comments name the same versions', async (t) => {
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' });
  for (const file of files.filter((name) => name.endsWith('.ts'))) {
    for (const [text, name = '', version] of read(`src/${file}`).matchAll(
      /\b([\w@/-]+) (\d+\.\d+(?:\.\d+)?)/g,
    )) {
      const right = named.get(name);
      if (right !== undefined) t.ok(`${right}.`.startsWith(`${version}.`), `${file}: ${text}`);
    }
  }
});
