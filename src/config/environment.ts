import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { asError } from '../errors.ts';
import { nearest } from './did-you-mean.ts';
import type { Fault } from './fault.ts';
import { type Field, fieldsOf } from './fields.ts';
import { configSchema } from './schema.ts';

/** A value from outside the file, and the name of the variable or flag that gave it. */
export interface Setting {
  readonly from: string;
  readonly path: readonly string[];
  readonly value: unknown;
}

export interface Environment {
  readonly settings: readonly Setting[];
  readonly faults: readonly Fault[];
  /** Variables that begin with ONCEGATE_ and mean nothing, and what to say of them. */
  readonly unknown: readonly { readonly name: string; readonly text: string }[];
}

/** `store.poolSize` → `ONCEGATE_STORE_POOL_SIZE` */
export function variableName(path: readonly string[]): string {
  return `ONCEGATE_${path.map((step) => step.replaceAll(/[A-Z]/g, '_$&').toUpperCase()).join('_')}`;
}

/** Every variable that sets a field, each also with `_FILE`. An empty variable counts as not set. */
export function readEnvironment(env: NodeJS.ProcessEnv): Environment {
  const fields = fieldsOf(configSchema).filter(
    ({ kind, path }) => kind !== 'section' && !path.includes('[]'),
  );
  const settings: Setting[] = [];
  const faults: Fault[] = [];
  // Names the file itself; the command line reads it.
  const known = new Set<string>(['ONCEGATE_CONFIG']);
  for (const field of fields) {
    const names = [
      variableName(field.path),
      ...(field.path.join('.') === 'store.url' ? ['DATABASE_URL'] : []),
    ];
    for (const name of names.flatMap((base) => [base, `${base}_FILE`])) known.add(name);
    try {
      const found = names.map((name) => lookUp(env, name)).find((value) => value !== null);
      if (found != null)
        settings.push({ from: found.from, path: field.path, value: valueOf(field, found.text) });
    } catch (thrown) {
      faults.push({
        where: 'environment',
        offset: Number.MAX_SAFE_INTEGER,
        path: field.path,
        text: asError(thrown).message,
      });
    }
  }
  const unknown = Object.keys(env)
    .filter((name) => name.startsWith('ONCEGATE_') && !known.has(name) && !isServiceLink(name))
    .map((name) => ({ name, text: unknownText(name, [...known]) }));
  return { settings, faults, unknown };
}

function unknownText(name: string, known: readonly string[]): string {
  const guess = nearest(name, known);
  return `the variable ${name} sets nothing: no field has this name${guess === null ? '' : `; did you mean ${guess}?`}`;
}

/** Kubernetes gives these to every pod beside a Service whose name begins with "oncegate". */
function isServiceLink(name: string): boolean {
  return /_SERVICE_(HOST|PORT)|_PORT(_\d+_.*)?$/.test(name);
}

function lookUp(env: NodeJS.ProcessEnv, name: string): { from: string; text: string } | null {
  const [text, file] = [env[name] ?? '', env[`${name}_FILE`] ?? ''];
  if (text !== '' && file !== '') throw new Error(`${name} and ${name}_FILE are both set; keep one of them`);
  if (text !== '') return { from: name, text };
  if (file === '') return null;
  try {
    return { from: `${name}_FILE`, text: readFileSync(file, 'utf8').replace(/\r?\n$/, '') };
  } catch (thrown) {
    throw new Error(
      `${name}_FILE cannot be read (${asError(thrown).message}); write the path of a readable file`,
    );
  }
}

function valueOf(field: Field, text: string): unknown {
  if (field.kind === 'text') return text;
  try {
    return parse(text);
  } catch {
    throw new Error(
      `${variableName(field.path)} is not YAML; write it as in the file, for instance [a, b] or { a: b }`,
    );
  }
}
