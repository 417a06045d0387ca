import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { compilePolicies } from '../../src/config/config.ts';
import { variableName } from '../../src/config/environment.ts';
import { fieldsOf } from '../../src/config/fields.ts';
import { loadConfig } from '../../src/config/load.ts';
import { configSchema } from '../../src/config/schema.ts';

const load = (text: string, env: NodeJS.ProcessEnv = {}) => loadConfig({ text, env });
const database = 'postgres://u:p@h/d';

t.test('nothing written: every default', async (t) => {
  const config = load('');
  t.same(config.listen, { data: { host: '0.0.0.0', port: 8080 }, ops: { host: '0.0.0.0', port: 9090 } });
  t.same(config.store, { kind: 'none' });
  t.equal(config.leaseMs, 60_000);
  t.same(config.keyLimits, { minLength: 0, maxLength: 255 });
  t.equal(
    config.identity,
    'tenant=none scope=tenant,endpoint key=header:idempotency-key,header:x-idempotency-key',
  );
  t.same(config.warnings, []);
  t.match(config.defaults, {
    route: 'default',
    methods: ['POST', 'PATCH'],
    outcomes: { preset: 'standard', overrides: {} },
    retentionMs: 86_400_000,
    maxRequestBodyBytes: 1_048_576,
    upstream: { origin: null, timeoutMs: 30_000 },
  });
  t.same(load('# only a comment\n'), config);
});

t.test('a route is its own fields over the defaults', async (t) => {
  const config = load(`
upstream: { url: http://A.example:80/, timeout: 5s }
defaults: { retention: 2h, outcomes: payments, fingerprint: { body: raw }, inFlight: { wait: 1s } }
routes:
  - path: /a
    outcomes: { preset: stripe, 409: release, 500: unknown }
    fingerprint: { ignore: [/t] }
    inFlight: { answer: 202 }
    forwardKey: { rename: X-Key }
    upstream: { timeout: 7s }
  - { path: /b/*, upstream: { url: "https://b", host: upstream }, mode: off }
`);
  t.match(config.routes[0], {
    route: '/a',
    outcomes: { preset: 'stripe', overrides: { 409: 'release', 500: 'unknown' } },
    fingerprint: { body: 'raw', ignore: ['/t'], headers: [] },
    inFlight: { waitMs: 1_000, answer: 202 },
    forwardKey: { kind: 'rename', header: 'x-key' },
    retentionMs: 7_200_000,
    upstream: { origin: 'http://a.example', timeoutMs: 7_000, host: 'preserve' },
  });
  t.equal(config.routes[0]?.outcomes.overrides[409], 'release');
  t.match(config.routes[1], {
    mode: 'off',
    upstream: { origin: 'https://b', timeoutMs: 5_000, host: 'upstream' },
  });
  t.match(config.warnings, [/routes\[0\]\.fingerprint\.ignore: has no effect/]);
  const policies = compilePolicies(config);
  t.equal(policies.policyFor('POST', '/b/c').upstream.origin, 'https://b');
  t.equal(policies.policyFor('POST', '/c').upstream.origin, 'http://a.example');
});

t.test('policies need an upstream, or a fallback', async (t) => {
  t.throws(() => compilePolicies(load('')), { code: 'usage', message: /ONCEGATE_UPSTREAM_URL/ });
  const config = load('routes: [{ path: /b, upstream: { url: http://b } }]');
  const policies = compilePolicies(config, 'http://demo');
  t.equal(policies.defaults.upstream.origin, 'http://demo');
  t.equal(policies.policyFor('GET', '/b').upstream.origin, 'http://b');
});

t.test('flag over environment over file over default', async (t) => {
  const text = 'lease: 5s\nlog: { level: warn }\nupstream: { url: http://file }';
  const env = { ONCEGATE_LEASE: '6s', ONCEGATE_UPSTREAM_URL: 'http://env', ONCEGATE_LOG_LEVEL: '' };
  const flags = [{ from: 'URL', path: ['upstream', 'url'], value: 'http://flag' }];
  const config = loadConfig({ text, env, flags });
  t.equal(config.leaseMs, 6_000);
  t.equal(config.log.level, 'warn', 'an empty variable is not set');
  t.equal(config.defaults.upstream.origin, 'http://flag');
  t.equal(config.loops.sweepMs, 15_000);
  t.throws(
    () => loadConfig({ text, env, flags: [{ from: '--listen', path: ['listen', 'data'], value: '80' }] }),
    {
      message: /^--listen: listen\.data: has no host/m,
    },
  );
  t.throws(() => load('store: 5', { DATABASE_URL: database }), { message: /store: must be a map/ });
});

t.test('a higher layer chooses the store', async (t) => {
  const embedded = { from: '--embedded', path: ['store', 'embedded'], value: true };
  const url = { from: '--database-url', path: ['store', 'url'], value: database };
  const env = { DATABASE_URL: database };
  t.match(load('', env).store, { kind: 'external', url: database, migrate: 'check', poolSize: 10 });
  t.match(load('store: { embedded: true, dataDir: d }').store, {
    kind: 'embedded',
    dataDir: 'd',
    migrate: 'auto',
  });
  t.equal(load('store: { embedded: true }', env).store.kind, 'external');
  t.equal(load(`store: { url: ${database} }`, { ONCEGATE_STORE_EMBEDDED: 'true' }).store.kind, 'embedded');
  t.equal(loadConfig({ text: '', env, flags: [embedded] }).store.kind, 'embedded');
  t.equal(
    loadConfig({ text: 'store: { url: "${NOT_SET}" }', env: {}, flags: [embedded] }).store.kind,
    'embedded',
  );
  t.equal(loadConfig({ text: 'store: { embedded: true }', env: {}, flags: [url] }).store.kind, 'external');
  t.throws(() => loadConfig({ text: '', env: {}, flags: [url, embedded] }), {
    message: /^--embedded: store\.embedded: /m,
  });
  t.match(load('', { DATABASE_URL: 'postgres://other/d', ONCEGATE_STORE_URL: database }).store, {
    url: database,
  });
});

t.test('environment', async (t) => {
  const folder = t.testdir({ secret: `${database}\n`, two: 'a\n\n' });
  t.match(load('', { DATABASE_URL_FILE: join(folder, 'secret') }).store, { url: database });
  t.match(load('', { ONCEGATE_STORE_URL_FILE: join(folder, 'secret') }).store, { url: database });
  t.throws(() => load('', { DATABASE_URL: database, DATABASE_URL_FILE: join(folder, 'secret') }), {
    message: /store\.url: DATABASE_URL and DATABASE_URL_FILE are both set; keep one/,
  });
  t.throws(() => load('', { ONCEGATE_STORE_URL_FILE: join(folder, 'none') }), {
    message: /store\.url: ONCEGATE_STORE_URL_FILE cannot be read \(ENOENT/,
  });
  t.throws(() => load('', { ONCEGATE_STORE_DATA_DIR_FILE: join(folder, 'two'), ONCEGATE_LEASE: 'x' }), {
    message: /^ONCEGATE_LEASE: lease: is not a duration/m,
  });
  t.throws(() => load('', { ONCEGATE_TENANT_FROM: '{ header: ' }), {
    message: /tenant\.from: ONCEGATE_TENANT_FROM is not YAML/,
  });
  const config = load('', {
    ONCEGATE_TENANT_FROM: '{ header: X-Tenant }',
    ONCEGATE_SCOPE: '[tenant]',
    ONCEGATE_DEFAULTS_OUTCOMES: '{ preset: stripe, 404: release }',
    ONCEGATE_DEFAULTS_IN_FLIGHT_ANSWER: '202',
    ONCEGATE_ROUTES: '[{ path: /a }]',
  });
  t.equal(
    config.identity,
    'tenant=header:x-tenant scope=tenant key=header:idempotency-key,header:x-idempotency-key',
  );
  t.same(config.defaults.outcomes, { preset: 'stripe', overrides: { 404: 'release' } });
  t.equal(config.defaults.inFlight.answer, 202);
  t.equal(config.routes[0]?.route, '/a');
});

t.test('variables that mean nothing are named; those of Kubernetes and of the file are not', async (t) => {
  const env = {
    ONCEGATE_UPSTRAEM_URL: 'x',
    ONCEGATE_MINE: '5s',
    ONCEGATE_SERVICE_HOST: 'x',
    ONCEGATE_PORT: 'tcp://x',
    ONCEGATE_PORT_8080_TCP_ADDR: 'x',
    ONCEGATE_OPS_SERVICE_PORT_OPS: '1',
  };
  t.same(load('lease: ${ONCEGATE_MINE}', env).warnings, [
    'the variable ONCEGATE_UPSTRAEM_URL sets nothing: no field has this name; did you mean ONCEGATE_UPSTREAM_URL?',
  ]);
});

t.test('every field has a variable of its own', async (t) => {
  const names = fieldsOf(configSchema)
    .filter(({ kind, path }) => kind !== 'section' && !path.includes('[]'))
    .map(({ path }) => variableName(path));
  t.equal(new Set(names.flatMap((name) => [name, `${name}_FILE`])).size, names.length * 2);
  t.ok(names.includes('ONCEGATE_STORE_POOL_SIZE'));
  t.ok(names.includes('ONCEGATE_DEFAULTS_IN_FLIGHT_WAIT'));
});

t.test('variables in the file', async (t) => {
  const env = { LEVEL: 'warn', SIZE: '7', HOST: 'h', EMPTY: '', TRICK: 'x }\nlease: 1s' };
  const config = load(
    'log: { level: "${LEVEL}" }\nupstream:\n  url: http://${HOST}:${PORT:-81}\nlease: ${EMPTY:-9s}\nstore:\n  poolSize: ${SIZE}\n  url: postgres://h/d\n  dataDir: "${TRICK}$${A}"\n',
    env,
  );
  t.equal(config.log.level, 'warn');
  t.equal(config.defaults.upstream.origin, 'http://h:81');
  t.equal(config.leaseMs, 9_000, 'no variable can add fields');
  t.match(config.store, { poolSize: 7 });
  t.throws(
    () => load('store: { poolSize: "${SIZE}" }', env),
    { message: /must be a number, not text/ },
    'quoted stays text',
  );
  t.match(load('store: { embedded: true, dataDir: "${TRICK}$${A}" }', env).store, {
    dataDir: 'x }\nlease: 1s${A}',
  });
});

t.test('aliases are copies', async (t) => {
  const config = loadConfig({
    text: 'routes:\n  - path: /a\n    inFlight: &x { wait: 1s }\n  - path: /b\n    inFlight: *x\n',
    env: {},
  });
  t.same(
    config.routes.map(({ inFlight }) => inFlight.waitMs),
    [1_000, 1_000],
  );
  t.throws(
    () => load('routes:\n  - path: /a\n    inFlight: &x { wait: 1 }\n  - path: /b\n    inFlight: *x\n'),
    {
      message: /config:3:26: routes\[0\].*\nconfig:3:26: routes\[1\]/,
    },
  );
});

t.test('one port on two addresses is no clash', async (t) => {
  t.doesNotThrow(() =>
    load('listen: { data: 10.0.0.5:3000, ops: 127.0.0.1:3000 }\nupstream: { url: http://localhost:3001 }'),
  );
  t.doesNotThrow(() => load('listen: { data: 10.0.0.5:3000 }\nupstream: { url: http://127.0.0.1:3000 }'));
  t.doesNotThrow(() => load('listen: { data: 0.0.0.0:80 }\nupstream: { url: https://localhost }'));
  t.doesNotThrow(() => load('listen: { data: 0.0.0.0:0, ops: 0.0.0.0:0 }'));
  t.throws(() => load('listen: { data: "[::]:80" }\nupstream: { url: http://localhost }'), {
    message: /our own listen/,
  });
});

t.test('from a file', async (t) => {
  const file = join(t.testdir({}), 'c.yaml');
  writeFileSync(file, 'lease: 7s');
  t.equal(loadConfig({ file, env: {} }).leaseMs, 7_000);
});
