import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { join, resolve } from 'node:path';
import t from 'tap';

const root = resolve(import.meta.dirname, '../..');

interface Packed {
  readonly size: number;
  readonly files: readonly { readonly path: string; readonly size: number; readonly mode: number }[];
}

/** `dist` was built by scripts/test.mjs; prepack would only build it again. */
function pack(): Packed {
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts', '--loglevel=error'];
  const said = execFileSync('npm', args, { cwd: root, encoding: 'utf8' });
  return (JSON.parse(said) as [Packed])[0];
}

/** Bytes. An answer kept by mistake, a binary or a map would be over this. */
const largestFile = 64 * 1024;
const largestTarball = 512 * 1024;

const { files, size } = pack();
const paths = files.map(({ path }) => path);

t.test('what is in the package, and nothing else', async (t) => {
  const documents = ['README.md', 'CHANGELOG.md', 'LICENSE', 'config.example.yaml'];
  t.strictSame(
    new Set(paths.map((path) => path.split('/')[0])),
    new Set(['package.json', 'dist', 'migrations', ...documents]),
  );
  t.strictSame(
    paths.filter((path) => path.startsWith('dist/') && !path.endsWith('.js')),
    [],
    'no maps, no stamp',
  );
  t.strictSame(
    files.filter((file) => file.size > largestFile),
    [],
    'nothing large',
  );
  t.ok(size < largestTarball, `${size} bytes`);
});

t.test('every source is there compiled, every migration as it is', async (t) => {
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `dist/${name.replace(/\.ts$/, '.js')}`);
  t.strictSame(paths.filter((path) => path.startsWith('dist/')).sort(), sources.sort());
  const migrations = readdirSync(join(root, 'migrations')).map((name) => `migrations/${name}`);
  t.strictSame(paths.filter((path) => path.startsWith('migrations/')).sort(), migrations.sort());
});

interface Manifest {
  readonly bin: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
}

t.test('the command is there, and whatever it imports will be installed', async (t) => {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;
  const command = manifest.bin['oncegate'] ?? '';
  t.ok(paths.includes(command), command);
  t.match(readFileSync(join(root, command), 'utf8'), /^#!\/usr\/bin\/env node\n/);
  t.strictSame(importedPackages().sort(), Object.keys(manifest.dependencies).sort());
});

/** Packages that the compiled code names in an import, static or not. */
function importedPackages(): string[] {
  const named = new Set<string>();
  for (const path of paths.filter((name) => name.endsWith('.js'))) {
    const text = readFileSync(join(root, path), 'utf8');
    for (const [, specifier = ''] of text.matchAll(/(?:\bfrom |\bimport |\bimport\()['"]([^'"]+)['"]/g)) {
      if (specifier.startsWith('.') || specifier.startsWith('node:')) continue;
      named.add(specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/'));
    }
  }
  return [...named].filter((name) => !builtinModules.includes(name));
}
