/** Writes the part of the chart's values schema that is Oncegate's own configuration: `npm run docs`. A test compares the two. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { configJsonSchema } from '../src/config/json-schema.ts';

type Node = Record<string, unknown>;

const file = new URL('../helm/oncegate/values.schema.json', import.meta.url);

/** The file as it should be: what is the chart's own in it stays. */
export function chartSchema(): string {
  const schema = JSON.parse(readFileSync(file, 'utf8')) as Node & { properties: Node };
  const { $schema: _, title: __, ...config } = configJsonSchema();
  for (const path of ['properties.defaults.properties.mode', 'properties.routes.items.properties.mode']) {
    const mode = path.split('.').reduce<Node>((node, step) => node[step] as Node, config);
    (mode['anyOf'] as Node[]).push({ const: false, description: 'What Helm makes of a bare off.' });
  }
  schema.properties['config'] = config;
  return `${JSON.stringify(schema, null, 2)}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(file, chartSchema());
