import t from 'tap';
import { loadConfig } from '../../src/config/load.ts';
import { OncegateError } from '../../src/errors.ts';

function faultsOf(text: string, env: NodeJS.ProcessEnv = {}): string[] {
  try {
    loadConfig({ file: 'f.yaml', text, env });
    return [];
  } catch (error) {
    if (!(error instanceof OncegateError) || error.code !== 'config_invalid') throw error;
    return error.message.split('\n').slice(1);
  }
}

/** Each config and every line that it must be answered with, from its position on. */
const table: readonly (readonly [config: string, ...faults: string[]])[] = [
  // Names
  ['upstreem: {}', '1:1: upstreem: unknown field; did you mean upstream?'],
  [
    'upstream:\n  url: http://a:1\n  tmeout: 30s\n',
    '3:3: upstream.tmeout: unknown field; did you mean timeout?',
  ],
  ['log: { colour: red }', '1:8: log.colour: unknown field; write one of level'],
  ['listen: { admin: 127.0.0.1:9091 }', '1:11: listen.admin: unknown field; write one of data, ops'],
  [
    'routes:\n  - path: /a\n    retentoin: 7d',
    '3:5: routes[0].retentoin: unknown field; did you mean retention?',
  ],
  ['tenant: { from: { haeder: X } }', '1:19: tenant.from.haeder: unknown field; did you mean header?'],
  ['upstream: {}\nlease: 5s\nupstream: {}', '3:1: upstream: is given twice in one map; keep one of them'],
  // Kinds
  ['store: 5', '1:8: store: must be a map, not a number; write for instance store: { url: postgres://'],
  ['store:\nlease: 5s', '1:1: store: is empty; write for instance store: { url: postgres://'],
  ['routes: {}', '1:9: routes: must be a list, not a map; write for instance routes: [ { path: /v1/charges'],
  ['routes: [/v1]', '1:10: routes[0]: must be a map, not text; '],
  ['routes:\n  - methods: [POST]', '2:5: routes[0].path: is missing; write for instance path: /v1/charges'],
  [
    'store: { poolSize: "ten" }',
    '1:20: store.poolSize: must be a number, not text; write for instance poolSize: 10',
  ],
  ['store: { poolSize: 1 }', '1:20: store.poolSize: is too small; write at least 6'],
  ['upstream: { connections: 1.5 }', '1:26: upstream.connections: must be a whole number, not a fraction; '],
  ['upstream: { connections: 100000 }', '1:26: upstream.connections: is too large; write at most 65535'],
  ['store: { embedded: yes }', '1:20: store.embedded: must be true or false, not text; '],
  ['store: { dataDir: "" }', '1:19: store.dataDir: is empty; write for instance dataDir: .oncegate'],
  ['defaults: { requireKey: 1 }', '1:25: defaults.requireKey: must be true or false, not a number; '],
  // Words
  ['defaults:\n  mode: of', '2:9: defaults.mode: of is not known; did you mean off?'],
  ['defaults:\n  methods: [post]', '2:13: defaults.methods[0]: post is not known; did you mean POST?'],
  [
    'defaults: { methods: [GET] }',
    '1:23: defaults.methods[0]: GET is not known; write one of POST, PATCH, PUT, DELETE',
  ],
  ['defaults: { methods: [] }', '1:22: defaults.methods: is empty; write at least one method, or mode: off'],
  ['log: { level: verbose }', '1:15: log.level: verbose is not known; write one of fatal, error'],
  [
    'defaults: { inFlight: { answer: 400 } }',
    '1:33: defaults.inFlight.answer: 400 is not known; write one of 409, 202, 503',
  ],
  [
    'defaults: { cors: { origins: [https://Shop.example/, "null"] } }',
    '1:31: defaults.cors.origins[0]: is not as browsers send it; write https://shop.example',
    '1:54: defaults.cors.origins[1]: is not the origin of a page; write for instance https://shop.example',
  ],
  ['defaults: { replayStatus: 201 }', '1:27: defaults.replayStatus: 201 is not known; write original or 200'],
  [
    'defaults: { outcomes: paymets }',
    '1:23: defaults.outcomes: paymets is not known; did you mean payments?',
  ],
  [
    'defaults: { outcomes: { prset: payments, 409: relase, 700: store } }',
    '1:25: defaults.outcomes.prset: unknown field; did you mean preset?',
    '1:47: defaults.outcomes.409: relase is not known; did you mean release?',
    '1:60: defaults.outcomes.700: is no status; write preset or a status from 200 to 599',
  ],
  [
    'defaults: { outcomes: { 409: release } }',
    '1:23: defaults.outcomes.preset: is missing; write one of standard, stripe',
  ],
  [
    'tenant: { from: authorization }',
    '1:17: tenant.from: authorization is not known; write none or { header: X-Tenant }',
  ],
  ['tenant: { from: [] }', '1:17: tenant.from: is a list; write none or { header: X-Tenant }'],
  ['scope: [endpoint]', '1:8: scope: is no scope; write [tenant, endpoint] or [tenant]'],
  ['scope: [tenent]', '1:9: scope[0]: tenent is not known; did you mean tenant?'],
  // Durations, sizes, addresses, URLs
  ['lease: 500ms', '1:8: lease: is too short; write at least 1s'],
  ['lease: 60', '1:8: lease: has no unit; write 60s'],
  ['upstream: { timeout: 1.5m }', '1:22: upstream.timeout: is not a duration; write 90s'],
  ['loops: { sweep: 48h }', '1:17: loops.sweep: is too long; write at most 1h'],
  ['defaults: { maxRequestBody: 1MB }', '1:29: defaults.maxRequestBody: is not a size; write 1mb'],
  ['defaults: { maxStoredBody: 1gb }', '1:28: defaults.maxStoredBody: is too large; write at most 100mb'],
  ['listen: { data: 8080 }', '1:17: listen.data: has no host; write 0.0.0.0:8080'],
  ['listen: { ops: 0.0.0.0:8080 }', '1:16: listen.ops: has the port of listen.data; write another port'],
  [
    'upstream: { url: localhost:3000 }',
    '1:18: upstream.url: must start with http:// or https://; write http://localhost:3000',
  ],
  ['upstream: { url: http://h/api }', '1:18: upstream.url: holds a path or query; write http://h ('],
  [
    'upstream: { url: "http://" }',
    '1:18: upstream.url: is not a URL; write for instance http://127.0.0.1:3000',
  ],
  ['upstream: { url: https://u:hidden@h:1 }', '1:18: upstream.url: holds credentials; write https://h:1'],
  ['upstream: { url: http://127.0.0.1:8080 }', '1:18: upstream.url: is our own listen.data; '],
  [
    'store: { url: mysql://u:hidden@h/d }',
    '1:15: store.url: must start with postgres://; write postgres://user:',
  ],
  ['store: { url: "postgres://u:p/w@h/d" }', '1:15: store.url: is not a URL; percent-encode'],
  [
    'store: { url: postgres://h/d, embedded: true, migrate: never }',
    '1:41: store.embedded: embedded: true and url exclude each other; keep one of them',
    '1:56: store.migrate: never is not known; write check or auto',
  ],
  // Keys, headers, pointers
  ['key: { from: [Idempotency-Key] }', '1:15: key.from[0]: must name its kind; write header:Idempotency-Key'],
  ['key: { from: [header:a, header:A] }', '1:14: key.from: names a header twice; keep one'],
  ['key: { from: [] }', '1:14: key.from: is empty; write [header:Idempotency-Key]'],
  ['key: { maxLength: 256 }', '1:19: key.maxLength: is too large; write at most 255'],
  ['key: { minLength: 20, maxLength: 10 }', '1:19: key.minLength: is over maxLength; '],
  ['key: { from: [header:a b] }', '1:15: key.from[0]: is not a header name; '],
  [
    'tenant: { from: { header: Authorization } }',
    '1:27: tenant.from.header: Authorization has another meaning; ',
  ],
  [
    'tenant: { from: { header: X_Forwarded.For } }',
    '1:27: tenant.from.header: X_Forwarded.For has another meaning; ',
  ],
  [
    'tenant: { from: { header: X-T } }\nkey: { from: [header:x_t] }\ndefaults: { forwardKey: { rename: X.T } }',
    '2:15: key.from[0]: is the header that names the tenant; ',
    '3:35: defaults.forwardKey.rename: is the header that names the tenant; ',
  ],
  [
    'tenant: { from: { header: X-T } }\nkey: { from: [header:x-t] }\ndefaults: { forwardKey: { rename: X-T } }',
    '2:15: key.from[0]: is the header that names the tenant; ',
    '3:35: defaults.forwardKey.rename: is the header that names the tenant; ',
  ],
  [
    'defaults: { fingerprint: { ignore: [a] } }',
    '1:37: defaults.fingerprint.ignore[0]: is not a JSON pointer; ',
  ],
  [
    'defaults: { fingerprint: { headers: [a b, Connection, Traceparent, Content-Type, X_HTTP_Method, Authorization, X-Idempotency-Key] } }',
    '1:38: defaults.fingerprint.headers[0]: is not a header name; ',
    '1:43: defaults.fingerprint.headers[1]: Connection has another meaning; ',
    '1:55: defaults.fingerprint.headers[2]: Traceparent is another one on each try, so a retry would get 422; remove it',
    '1:68: defaults.fingerprint.headers[3]: Content-Type always counts; remove it',
    '1:82: defaults.fingerprint.headers[4]: X_HTTP_Method always counts; remove it',
    '1:97: defaults.fingerprint.headers[5]: Authorization carries credentials, ',
  ],
  [
    'routes: [{ path: /a, fingerprint: { headers: [X-Org, x_idempotency_key] } }]',
    '1:54: routes[0].fingerprint.headers[1]: carries the key, which counts anyway; remove it',
  ],
  // Routes
  ['routes: [{ path: v1 }]', '1:18: routes[0].path: must start with a slash; write /v1'],
  ['routes: [{ path: /v1/ch* }]', '1:18: routes[0].path: has * inside a segment; '],
  [
    'routes:\n  - path: /a\n  - path: /b\n  - path: /%61\n',
    '4:11: routes[2].path: is also routes[0], both for POST, PATCH; merge them, or give each its own methods',
  ],
  [
    'routes:\n  - path: /a\n  - path: /A\nrouting: { ignoreCase: true }',
    '3:11: routes[1].path: is also routes[0], both for POST, PATCH; ',
  ],
  [
    'routes:\n  - { path: /a, methods: [POST] }\n  - { path: /a, methods: [PUT], upstream: { url: http://b } }\n',
    '3:43: routes[1].upstream: differs from that of routes[0], which has the same path; ',
  ],
  // YAML
  ['upstream:\n\turl: x', '2:1: is not YAML: Tabs are not allowed as indentation; indent with spaces'],
  ['upstream: { url: http://a\n', '2:1: is not YAML: '],
  ['lease: "5s', '1:11: is not YAML: '],
  ['- a', '1:1: must be a map of fields; '],
  ['lease: 5s\n---\nlease: 6s', '2:1: holds several documents; remove the --- and what follows it'],
  ['a: &x [*x]', '1:1: cannot be read: '],
  ['lease: *x', '1:1: cannot be read: '],
  // Variables
  ['lease: ${LEASE}', '1:8: lease: the variable LEASE is not set; set it, or write ${LEASE:-default}'],
  [
    'lease: "${a b}"',
    '1:8: lease: ${a b} names no variable; write ${NAME} or ${NAME:-default}, or $${ for a literal ${',
  ],
];

t.test('each fault has its place and says what to write', async (t) => {
  for (const [config, ...expected] of table) {
    const found = faultsOf(config);
    t.equal(found.length, expected.length, `${config}\n${found.join('\n')}`);
    for (const [i, line] of expected.entries())
      t.ok(found[i]?.startsWith(`f.yaml:${line}`), `${found[i]} | ${line}`);
    t.notMatch(found.join(), /hidden/, 'no credential is repeated');
  }
});

t.test('all faults at once, from top to bottom, also across sections and sources', async (t) => {
  const found = faultsOf(
    'log: { level: x }\nlisten: { ops: 0.0.0.0:8080 }\nroutes:\n  - { path: /a }\n  - { path: /a }\nlease: ${NO}\nfoo: 1\n',
    { ONCEGATE_STORE_POOL_SIZE: 'many' },
  );
  t.same(
    found.map((line) => line.split(': ', 2).join(': ')),
    [
      'f.yaml:1:15: log.level',
      'f.yaml:2:16: listen.ops',
      'f.yaml:5:13: routes[1].path',
      'f.yaml:6:8: lease',
      'f.yaml:7:1: foo',
      'ONCEGATE_STORE_POOL_SIZE: store.poolSize',
    ],
  );
});

t.test('a file that is not there', async (t) => {
  t.throws(() => loadConfig({ file: '/nowhere/x.yaml', env: {} }), {
    code: 'config_invalid',
    message: /cannot read the config file \/nowhere\/x\.yaml: ENOENT/,
  });
});
