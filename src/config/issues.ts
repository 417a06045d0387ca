import { stringify } from 'yaml';
import type * as z from 'zod';
import { nearest, suggestion } from './did-you-mean.ts';
import { type Path, pathText } from './fault.ts';
import { memberNames, samplesOf } from './fields.ts';
import { configSchema } from './schema.ts';

type Issue = z.core.$ZodIssue;

/** A schema's complaint in our words. `what`: whether the name is wrong or the value. */
export interface Complaint {
  readonly path: Path;
  readonly text: string;
  readonly what: 'name' | 'value';
}

/** The schema's own texts are emptied by `error: () => ''`, so that what is left was written by us. */
export function complaintsOf(issues: readonly Issue[], tree: unknown): Complaint[] {
  const flat = issues.flatMap((issue) => flatten(issue, []));
  const unknown = flat.flatMap((issue) => (issue.code === 'unrecognized_keys' ? unknownNames(issue) : []));
  const others = flat.flatMap((issue) =>
    issue.code === 'unrecognized_keys' ? [] : [otherComplaint(issue, tree)],
  );
  // A misspelt required name is both unknown and missing: the first says it all.
  const meant = new Set(unknown.map(({ meantPath }) => meantPath));
  const said = new Set<string>();
  return [...unknown, ...others].filter(({ path }) => {
    const id = pathText(path);
    if (said.has(id) || (meant.has(id) && valueAt(tree, path) === undefined)) return false;
    said.add(id);
    return true;
  });
}

/** A choice between a word and a map: the issues of the branch that was meant, with whole paths. Our own texts come first. */
function flatten(issue: Issue, above: Path): Issue[] {
  const path = [...above, ...issue.path];
  if (issue.code !== 'invalid_union') return [{ ...issue, path } as Issue];
  const map = issue.errors.find(
    (branch) => !branch.some((inner) => inner.path.length === 0 && isWrongShape(inner)),
  );
  if (map !== undefined) {
    return map
      .flatMap((inner) => flatten(inner, path))
      .sort((a, b) => Number(a.message === '') - Number(b.message === ''));
  }
  const words = issue.errors.flat().flatMap((inner) => (inner.code === 'invalid_value' ? inner.values : []));
  return [{ code: 'invalid_value', values: words, path, message: '' }];
}

function isWrongShape(issue: Issue): boolean {
  return issue.code === 'invalid_type' || issue.code === 'invalid_value';
}

function unknownNames(issue: z.core.$ZodIssueUnrecognizedKeys): (Complaint & { meantPath: string })[] {
  const names = memberNames(configSchema, issue.path);
  return issue.keys.map((name) => ({
    path: [...issue.path, name],
    text: `unknown field; ${suggestion(name, names)}`,
    what: 'name',
    meantPath: pathText([...issue.path, nearest(name, names) ?? '']),
  }));
}

function otherComplaint(issue: Issue, tree: unknown): Complaint {
  const value = valueAt(tree, issue.path);
  return { path: issue.path, text: issue.message || textOf(issue, value), what: 'value' };
}

function textOf(issue: Issue, value: unknown): string {
  const example =
    issue.code === 'invalid_value' ? choices(issue.values, issue.path) : exampleText(issue.path);
  if (value === undefined) return `is missing; ${example}`;
  if (value === null) return `is empty; ${example}, or remove it`;
  switch (issue.code) {
    case 'invalid_value': {
      const guess = typeof value === 'string' ? nearest(value, issue.values.map(String)) : null;
      const wrong =
        typeof value === 'object' ? `is ${kindOf(value)}` : `${value as string | number} is not known`;
      return `${wrong}; ${guess === null ? example : `did you mean ${guess}?`}`;
    }
    case 'invalid_type':
      return `must be ${kindNames[issue.expected] ?? issue.expected}, not ${kindOf(value)}; ${example}`;
    case 'too_small':
      return issue.origin === 'string'
        ? `is empty; ${example}`
        : `is too small; write at least ${issue.minimum}`;
    case 'too_big':
      return `is too large; write at most ${issue.maximum}`;
    default:
      return `is not valid; ${example}`;
  }
}

/** The words that may be written, and maps by example. */
function choices(values: readonly unknown[], path: Path): string {
  const maps = samplesOf(configSchema, path).filter((sample) => typeof sample === 'object');
  const all = [...values.map(String), ...maps.map(sampleText)];
  return all.length > 2 ? `write one of ${all.join(', ')}` : `write ${all.join(' or ')}`;
}

const kindNames: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map',
};

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'number' && !Number.isInteger(value)
    ? 'a fraction'
    : (kindNames[typeof value] ?? typeof value);
}

function exampleText(path: Path): string {
  // Of a list, one that is not empty.
  const samples = samplesOf(configSchema, path);
  const sample =
    samples.find((candidate) => !(Array.isArray(candidate) && candidate.length === 0)) ?? samples[0];
  const name = typeof path.at(-1) === 'string' ? `${String(path.at(-1))}: ` : '';
  return sample === undefined
    ? 'write a value of the right kind'
    : `write for instance ${name}${sampleText(sample)}`;
}

function sampleText(sample: unknown): string {
  return stringify(sample, { collectionStyle: 'flow', lineWidth: 0 }).trim();
}

export function valueAt(tree: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (value, step) =>
      typeof value === 'object' && value !== null ? (value as Record<PropertyKey, unknown>)[step] : undefined,
    tree,
  );
}
