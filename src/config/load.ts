import { readFileSync } from 'node:fs';
import { asError, OncegateError } from '../errors.ts';
import { crossChecks } from './checks.ts';
import { type Config, configOf } from './config.ts';
import { readEnvironment, type Setting } from './environment.ts';
import { type Fault, faultLines, faultsError, type Path, pathText } from './fault.ts';
import { interpolate } from './interpolate.ts';
import { complaintsOf, valueAt } from './issues.ts';
import { configSchema, type Settings } from './schema.ts';
import { warningsOf } from './warnings.ts';
import { readYaml, type YamlSource } from './yaml-source.ts';

export interface LoadInput {
  /** Path of the YAML file; with `text`, only its name in messages. */
  readonly file?: string;
  readonly text?: string;
  /** What flags said, with the flag's name. */
  readonly flags?: readonly Setting[];
  readonly env: NodeJS.ProcessEnv;
  /** A `store.url` whose variable is not set counts as not written: a password often comes only where it runs. */
  readonly storeLater?: boolean;
}

/** Flag over environment over file over default. Throws `config_invalid` with every fault, one a line. */
export function loadConfig(input: LoadInput): Config {
  const source = readYaml(input.file ?? 'config', input.text ?? readText(input.file));
  if (source.broken) throw faultsError(source.faults);
  const environment = readEnvironment(input.env);
  const layers = [environment.settings, input.flags ?? []];
  const tree = merge(source.tree, layers);
  const origin = originOf(layers.flat());
  const { faulty, used } = interpolate(tree, {
    env: input.env,
    skips: (path) => origin(path) !== null,
    isUnquoted: source.isUnquoted,
  });

  const storeUrl = pathText(['store', 'url']);
  const unset = input.storeLater ? faulty.get(storeUrl)?.unset : undefined;
  if (unset !== undefined) {
    faulty.delete(storeUrl);
    delete (tree['store'] as Record<string, unknown>)['url'];
  }

  const makeFault = faultMaker(source, origin);
  const { settings, faults } = validate(tree, faulty, makeFault);
  const all = [...source.faults, ...environment.faults, ...faults];
  if (settings === null || all.length > 0) throw faultsError(all);
  const unknown = environment.unknown.filter(({ name }) => !used.has(name)).map(({ text }) => text);
  const risks = warningsOf(settings, (path) => valueAt(tree, path) !== undefined);
  return configOf(settings, [
    ...faultLines(risks.map(({ path, text }) => makeFault(path, text))),
    ...unknown,
    ...(input.storeLater ? missingStore(settings, unset) : []),
  ]);
}

/** No fault where it comes later. `unset`: the variable that `store.url` is made of. */
function missingStore({ store }: Settings, unset: string | undefined): string[] {
  if (store.url !== undefined || store.embedded) return [];
  return unset === undefined
    ? ['no store is named here: serve will need DATABASE_URL, store.url or --embedded']
    : [`the variable ${unset} of store.url is not set here: serve will need it`];
}

function readText(file: string | undefined): string {
  if (file === undefined) return '';
  try {
    return readFileSync(file, 'utf8');
  } catch (thrown) {
    const why =
      (thrown as { code?: string }).code === 'EISDIR'
        ? 'it is a directory; Docker makes one where the file to be mounted does not exist'
        : asError(thrown).message;
    const text = `cannot read the config file ${file}: ${why}`;
    throw new OncegateError('config_invalid', text, { cause: thrown });
  }
}

/** A higher layer that names a store replaces a lower one's choice: `--embedded` beats DATABASE_URL. */
function merge(
  tree: Record<string, unknown>,
  layers: readonly (readonly Setting[])[],
): Record<string, unknown> {
  for (const layer of layers) {
    const store = tree['store'];
    if (isMap(store)) {
      if (layer.some(({ path }) => path.join('.') === 'store.url')) delete store['embedded'];
      if (layer.some(({ path, value }) => path.join('.') === 'store.embedded' && value === true))
        delete store['url'];
    }
    for (const { path, value } of layer) put(tree, path, value);
  }
  return tree;
}

/** A section that is not a map stays: it is a fault, and says so. */
function put(tree: Record<string, unknown>, path: readonly string[], value: unknown): void {
  let map = tree;
  for (const step of path.slice(0, -1)) {
    const next = (map[step] ??= {});
    if (!isMap(next)) return;
    map = next;
  }
  map[path.at(-1) ?? ''] = value;
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

type Origin = (path: Path) => string | null;

/** Which variable or flag gave the value at a path, or null if it is the file's. The last layer that names it counts. */
function originOf(settings: readonly Setting[]): Origin {
  const names = new Map(settings.map(({ path, from }) => [pathText(path), from]));
  return (path) =>
    path.map((_, i) => names.get(pathText(path.slice(0, i + 1)))).find((name) => name !== undefined) ?? null;
}

type MakeFault = (path: Path, text: string, what?: 'name' | 'value') => Fault;

function faultMaker(source: YamlSource, origin: Origin): MakeFault {
  return (path, text, what) => {
    const name = origin(path);
    return name === null
      ? source.faultAt(path, text, what)
      : { where: name, offset: Number.MAX_SAFE_INTEGER, path, text };
  };
}

function validate(
  tree: Record<string, unknown>,
  faulty: ReturnType<typeof interpolate>['faulty'],
  makeFault: MakeFault,
): { settings: Settings | null; faults: Fault[] } {
  const parsed = configSchema.safeParse(tree, { error: () => '' });
  const complaints = complaintsOf(parsed.error?.issues ?? [], tree).filter(
    ({ path }) => !faulty.has(pathText(path)),
  );
  const faults = [
    ...[...faulty.values()].map(({ path, text }) => makeFault(path, text)),
    ...complaints.map(({ path, text, what }) => makeFault(path, text, what)),
    ...crossChecks(parsed.data ?? soundSections(tree)).map(({ path, text }) => makeFault(path, text)),
  ];
  return { settings: parsed.data ?? null, faults };
}

/** The sections that are right by themselves, so that one fault does not hide another. */
function soundSections(tree: Record<string, unknown>): Partial<Settings> {
  const sections = Object.entries(configSchema.shape).flatMap(([name, schema]) => {
    const parsed = schema.safeParse(valueAt(tree, [name]));
    return parsed.success ? [[name, parsed.data]] : [];
  });
  return Object.fromEntries(sections);
}
