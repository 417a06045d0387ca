/** Writes docs/config.md from the config schema: `npm run docs`. A test compares the two. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { duration } from '../src/config/duration.ts';
import { variableName } from '../src/config/environment.ts';
import { type Field, fieldsOf } from '../src/config/fields.ts';
import { configJsonSchema } from '../src/config/json-schema.ts';
import { configSchema } from '../src/config/schema.ts';
import { size } from '../src/config/size.ts';

type Node = Record<string, unknown>;

const head = `# Configuration

<!-- Written by \`npm run docs\` from src/config/schema.ts; edit that. -->

Every field of the YAML file. [config.example.yaml](../config.example.yaml) shows all of them with their reasons;
\`oncegate validate --config FILE\` checks a file, \`oncegate schema\` prints a JSON Schema for editors.

- A flag wins over a variable, a variable over the file, the file over the default. \`DATABASE_URL\` is another name of
  \`ONCEGATE_STORE_URL\`. Every variable has a twin with \`_FILE\` added, which names a file that holds the value.
- The file is \`--config FILE\`, else \`ONCEGATE_CONFIG\`, else \`/etc/oncegate/config.yaml\` where it is there.
- \`\${NAME}\` and \`\${NAME:-default}\` in a value are filled in from the environment; \`$\${\` stands for \`\${\`.
- A duration is a whole number and one of ms, s, m, h, d; a size one of b, kb, mb, gb (units of 1024).
`;

export function configReference(): string {
  const schema = configJsonSchema();
  const fields = fieldsOf(configSchema);
  const sections = fields.filter(({ path }) => path.length === 1);
  return [head, ...sections.map((section) => sectionText(section, fields, schema))].join('\n');
}

function sectionText(section: Field, fields: readonly Field[], schema: Node): string {
  const [name = ''] = section.path;
  const members = fields.filter(
    ({ path, kind }) => path[0] === name && path.length > 1 && kind !== 'section',
  );
  const rows = (members.length === 0 ? [section] : members).map((field) => rowOf(field, schema));
  const isRoute = members.some(({ path }) => path.includes('[]'));
  const columns = isRoute
    ? ['field', 'value', 'what it does']
    : ['field', 'default', 'value', 'what it does', 'variable'];
  const table = [
    columns,
    columns.map(() => '---'),
    ...rows.map((row) => columns.map((column) => row[column] ?? '')),
  ];
  const text = members.length === 0 ? '' : `${section.description ?? ''}\n\n`;
  return `## ${name}\n\n${text}${table.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`;
}

function rowOf(field: Field, schema: Node): Record<string, string> {
  const isItem = field.path.includes('[]');
  const path = field.path.filter((step) => step !== '[]');
  return {
    field: code((isItem ? path.slice(1) : path).join('.')),
    default: field.fallback === undefined ? 'none' : code(flow(field.fallback)),
    value: valueText(nodeAt(schema, field.path), field),
    'what it does': cell(field.description ?? ''),
    variable: isItem ? '' : code(variableName(path)),
  };
}

function nodeAt(schema: Node, path: readonly string[]): Node {
  return path.reduce<Node>((node, step) => {
    const at = node['anyOf'] === undefined ? node : ((node['anyOf'] as Node[])[0] as Node);
    return (step === '[]' ? at['items'] : (at['properties'] as Node)[step]) as Node;
  }, schema);
}

/** What may be written. Every choice ends in the placeholder for a variable, which the head of the page tells of. */
function valueText(node: Node, field: Field): string {
  const options = Array.isArray(node['anyOf']) ? (node['anyOf'] as Node[]).slice(0, -1) : [node];
  const words = options.flatMap((option) => optionText(option));
  const maps = options.some((option) => option['type'] === 'object')
    ? field.examples.filter((example) => typeof example === 'object').map((example) => code(flow(example)))
    : [];
  const [sample] = field.examples;
  if (words[0] === 'text' && sample !== undefined) return `text, as ${code(flow(sample))}`;
  return [...words, ...maps].join(', ');
}

function optionText(node: Node): string[] {
  if (node['type'] === 'object') return [];
  if (node['const'] !== undefined) return [code(flow(node['const']))];
  if (Array.isArray(node['enum'])) return node['enum'].map((word) => code(String(word)));
  if (node['pattern'] === duration.pattern.source) return ['duration'];
  if (node['pattern'] === size.pattern.source) return ['size'];
  if (node['type'] === 'array') {
    const items = valueText(node['items'] as Node, {
      path: [],
      description: '',
      fallback: undefined,
      examples: [],
      kind: 'other',
    });
    return [`list of ${items}`];
  }
  const { minimum, maximum } = node;
  if (node['type'] === 'integer') return [`${String(minimum)} to ${String(maximum)}`];
  return [node['type'] === 'boolean' ? '`true`, `false`' : 'text'];
}

const code = (text: string): string => `\`${text.replaceAll('|', '\\|')}\``;
const cell = (text: string): string => text.replaceAll('|', '\\|');
const flow = (value: unknown): string => stringify(value, { collectionStyle: 'flow', lineWidth: 0 }).trim();

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(new URL('../docs/config.md', import.meta.url), configReference());
