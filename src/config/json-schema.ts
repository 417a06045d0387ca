import * as z from 'zod';
import { fieldsOf } from './fields.ts';
import { configSchema } from './schema.ts';

type Node = Record<string, unknown>;

/** A value that a variable fills in: what it will be is only known at start. */
const placeholder: Node = { type: 'string', pattern: '\\$\\{[A-Za-z_]\\w*(:-.*)?\\}' };

/** The config file as JSON Schema draft-07: what is written, not what code makes of it. For editors and other tools. */
export function configJsonSchema(): Node {
  const schema = z.toJSONSchema(configSchema, { io: 'input', target: 'draft-7' }) as Node;
  // zod forgets the examples of what it transforms.
  for (const { path, examples } of fieldsOf(configSchema)) {
    const node = nodeAt(schema, path);
    if (node !== undefined && examples.length > 0) node['examples'] = [...examples];
  }
  const { $schema, ...rest } = withPlaceholders(schema);
  return { $schema, title: 'Oncegate configuration', ...rest };
}

function nodeAt(schema: Node, path: readonly string[]): Node | undefined {
  return path.reduce<Node | undefined>(
    (node, step) =>
      (step === '[]' ? node?.['items'] : (node?.['properties'] as Node)?.[step]) as Node | undefined,
    schema,
  );
}

/** `poolSize: ${SIZE}` is as legal as `poolSize: 10`. Plain text takes it anyway. */
function withPlaceholders(node: Node): Node {
  const walked = Object.fromEntries(Object.entries(node).map(([name, value]) => [name, walk(name, value)]));
  if (Array.isArray(walked['anyOf'])) return { ...walked, anyOf: [...walked['anyOf'], placeholder] };
  const isScalar = ['integer', 'number', 'boolean'].includes(String(walked['type']));
  const isNarrow = ['enum', 'const', 'pattern'].some((name) => name in walked);
  if (!isScalar && !isNarrow) return walked;
  const { description, default: fallback, examples, ...own } = walked;
  return {
    ...(description === undefined ? {} : { description }),
    ...(fallback === undefined ? {} : { default: fallback }),
    ...(examples === undefined ? {} : { examples }),
    anyOf: [own, placeholder],
  };
}

/** Only keywords that hold schemas are gone into; `default` and `examples` hold values. */
function walk(keyword: string, value: unknown): unknown {
  if (keyword === 'properties')
    return Object.fromEntries(
      Object.entries(value as Node).map(([name, member]) => [name, withPlaceholders(member as Node)]),
    );
  if (keyword === 'items' || (keyword === 'additionalProperties' && typeof value === 'object'))
    return withPlaceholders(value as Node);
  // The alternatives of a choice stay as they are: the choice itself takes the placeholder.
  if (keyword === 'anyOf')
    return (value as Node[]).map((option) => ('properties' in option ? withPlaceholders(option) : option));
  return value;
}
