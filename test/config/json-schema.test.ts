import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import t from 'tap';
import { parse } from 'yaml';
import { configReference } from '../../scripts/config-reference.ts';
import { configJsonSchema } from '../../src/config/json-schema.ts';

const schema = configJsonSchema();
const ajv = new Ajv({ allErrors: true });
const validate = ajv.compile(schema);
const accepts = (yaml: string): boolean => validate(parse(yaml) ?? {});

t.test('it is draft-07, and describes every property', async (t) => {
  t.equal(schema['$schema'], 'http://json-schema.org/draft-07/schema#');
  t.ok(ajv.validateSchema(schema), ajv.errorsText());
});

t.test('it accepts what we accept', async (t) => {
  const example = readFileSync('config.example.yaml', 'utf8');
  t.ok(accepts(example), ajv.errorsText(validate.errors));
  for (const yaml of [
    '',
    'upstream: { url: http://a:1, timeout: 5s }',
    'upstream: { timeout: "${TIMEOUT:-30s}", connections: "${N}" }',
    'store: { url: "${DATABASE_URL}", embedded: "${E:-false}", poolSize: 6 }',
    'defaults: { outcomes: { preset: payments, 409: release } }',
    'defaults: { outcomes: "${TABLE}", methods: ["${METHOD}"], inFlight: { answer: 202 } }',
    'tenant: { from: { header: X-Tenant } }',
  ]) {
    t.ok(accepts(yaml), `${yaml}: ${ajv.errorsText(validate.errors)}`);
  }
});

t.test('it refuses what an editor should underline', async (t) => {
  for (const yaml of [
    'upstreem: {}',
    'upstream: { tmeout: 5s }',
    'upstream: { timeout: 30 }',
    'upstream: { timeout: 30 seconds }',
    'upstream: { timeout: "$TIMEOUT" }',
    'upstream: { connections: many }',
    'store: { poolSize: 1 }',
    'defaults: { mode: of }',
    'defaults: { outcomes: paymets }',
    'defaults: { outcomes: { preset: payments, 409: relase } }',
    'defaults: { methods: [post] }',
    'routes: [{ methods: [POST] }]',
    'routes: {}',
    'tenant: { from: { haeder: X } }',
  ]) {
    t.notOk(accepts(yaml), yaml);
  }
});

t.test('zod forgets no example', async (t) => {
  const upstream = (schema['properties'] as Record<string, { properties: Record<string, object> }>)[
    'upstream'
  ];
  t.match(upstream?.properties['url'], { examples: ['http://127.0.0.1:3000'] });
});

t.test('docs/config.md is what the schema says', async (t) => {
  t.equal(readFileSync('docs/config.md', 'utf8'), configReference(), 'npm run docs writes it');
});
