import * as z from 'zod';

type Schema = z.core.$ZodType;

/** One field of the schema, as people write it. */
export interface Field {
  /** `[]` stands for each item of a list. */
  readonly path: readonly string[];
  readonly description: string | undefined;
  /** What it is when nothing is written; undefined where there is no default. */
  readonly fallback: unknown;
  readonly examples: readonly unknown[];
  /** section: a map of fields. text: taken as it is from the environment. other: numbers, lists, choices of shape. */
  readonly kind: 'section' | 'text' | 'other';
}

/** Every field below `schema`, sections before their members. */
export function fieldsOf(schema: Schema, path: readonly string[] = []): Field[] {
  const bare = unwrap(schema);
  if (bare instanceof z.ZodObject) {
    return Object.entries(bare.shape).flatMap(([name, member]) => {
      const memberPath = [...path, name];
      return [fieldOf(member as Schema, memberPath), ...fieldsOf(member as Schema, memberPath)];
    });
  }
  return bare instanceof z.ZodArray ? fieldsOf(bare.element, [...path, '[]']) : [];
}

function fieldOf(schema: Schema, path: readonly string[]): Field {
  const layers = layersOf(schema);
  const bare = layers.at(-1);
  const isText = bare instanceof z.ZodString || bare instanceof z.ZodEnum;
  const notes = layers.map((layer) => z.globalRegistry.get(layer));
  const prefault = layers.find((layer) => layer instanceof z.ZodPrefault);
  return {
    path,
    description: notes.find((note) => note?.description !== undefined)?.description,
    fallback: prefault?.def.defaultValue,
    examples:
      (notes.find((note) => Array.isArray(note?.['examples']))?.['examples'] as
        | readonly unknown[]
        | undefined) ?? [],
    kind: bare instanceof z.ZodObject ? 'section' : isText ? 'text' : 'other',
  };
}

/** The names that may stand in the map at `path`. */
export function memberNames(schema: Schema, path: readonly PropertyKey[]): readonly string[] {
  const found = schemaAt(schema, path);
  return found instanceof z.ZodObject ? Object.keys(found.shape) : [];
}

/** Ways to write the field at `path`: its default, then its examples; of a section, its first member. */
export function samplesOf(schema: Schema, path: readonly PropertyKey[]): readonly unknown[] {
  const parent = schemaAt(schema, path.slice(0, -1));
  const member =
    parent instanceof z.ZodObject ? (parent.shape[String(path.at(-1))] as Schema | undefined) : undefined;
  if (member === undefined) return [];
  const { kind, fallback, examples } = fieldOf(member, []);
  const [first] = kind === 'section' ? memberNames(member, []) : [];
  if (first !== undefined) return [{ [first]: samplesOf(member, [first])[0] }];
  return fallback === undefined ? examples : [fallback, ...examples];
}

/** Of a choice between a word and a map, the map. */
function schemaAt(schema: Schema, path: readonly PropertyKey[]): Schema | undefined {
  let at: Schema | undefined = unwrap(schema);
  for (const step of path) {
    if (at instanceof z.ZodUnion) at = at.options.map(unwrap).find((option) => option instanceof z.ZodObject);
    if (at instanceof z.ZodObject) at = at.shape[String(step)] as Schema | undefined;
    else if (at instanceof z.ZodArray) at = at.element;
    else return undefined;
    if (at === undefined) return undefined;
    at = unwrap(at);
  }
  return at instanceof z.ZodUnion
    ? at.options.map(unwrap).find((option) => option instanceof z.ZodObject)
    : at;
}

/** The schema of what is written: without defaults, optionality and transforms. */
function unwrap(schema: Schema): Schema {
  return layersOf(schema).at(-1) ?? schema;
}

/** From the outermost wrapper to the schema of what is written; each may carry a note. */
function layersOf(schema: Schema): Schema[] {
  if (schema instanceof z.ZodExactOptional || schema instanceof z.ZodPrefault)
    return [schema, ...layersOf(schema.unwrap())];
  return schema instanceof z.ZodPipe ? [schema, ...layersOf(schema.in)] : [schema];
}
