import { readFileSync } from 'node:fs';
import t from 'tap';
import { parse } from 'yaml';
import * as z from 'zod';
import { fieldsOf } from '../../src/config/fields.ts';
import { loadConfig } from '../../src/config/load.ts';
import { configSchema } from '../../src/config/schema.ts';

const file = 'config.example.yaml';
const text = readFileSync(file, 'utf8');
const example: unknown = parse(text);

/** Every value that stands at `path`; `[]` goes into each item. */
function valuesAt(value: unknown, [step, ...rest]: readonly string[]): unknown[] {
  if (value === undefined) return [];
  if (step === undefined) return [value];
  if (step === '[]') return (value as unknown[]).flatMap((item) => valuesAt(item, rest));
  return valuesAt((value as Record<string, unknown>)[step], rest);
}

t.test('the example is legal and has nothing to warn of', async (t) => {
  t.same(loadConfig({ file, env: {} }).warnings, []);
});

t.test('it holds every field, outside routes with its default', async (t) => {
  for (const { path, kind, fallback, examples } of fieldsOf(configSchema)) {
    const name = path.join('.');
    const values = valuesAt(example, path);
    t.ok(values.length > 0, `${name} occurs`);
    if (kind === 'section' || name.startsWith('routes')) continue;
    t.same(values, [fallback ?? examples[0]], `${name} has its default, or the schema's example`);
  }
});

t.test('every field outside routes has its reason above it', async (t) => {
  const lines = text.split('\n');
  const end = lines.findIndex((line) => line.startsWith('routes:'));
  const after = lines.findIndex((line) => line.startsWith('loops:'));
  for (const [i, line] of lines.entries()) {
    if ((i > end && i < after) || !/^ *\w+:/.test(line)) continue;
    t.match(lines[i - 1], /^ *#/, line);
  }
  for (const choice of ['{ header: X-Tenant }', '{ rename: X-Original-Key }', 'preset: payments'])
    t.ok(text.includes(choice));
});

t.test('every field is described, and a JSON Schema can be made', async (t) => {
  for (const { path, description } of fieldsOf(configSchema)) t.ok(description, path.join('.'));
  const schema = z.toJSONSchema(configSchema, { io: 'input', target: 'draft-7' });
  t.equal(schema.type, 'object');
  t.equal(schema.additionalProperties, false);
});
