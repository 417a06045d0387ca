import t from 'tap';
import { loadConfig } from '../../src/config/load.ts';

function warningsOf(text: string, env: NodeJS.ProcessEnv = {}): readonly string[] {
  return loadConfig({ file: 'f.yaml', text, env }).warnings;
}

/** Each config, and every warning that it must give, from its position on. */
const table: readonly (readonly [config: string, ...warnings: string[]])[] = [
  [''],
  // Retention
  ['defaults: { retention: 1h }'],
  [
    'defaults:\n  retention: 59m',
    '2:14: defaults.retention: is 59m: a retry after that runs again; write 1h or more',
  ],
  ['routes:\n  - { path: /a, retention: 5m }', '2:28: routes[0].retention: is 5m: '],
  // Drain
  ['drain: { max: 30s }'],
  [
    'drain: { max: 29s }',
    "1:15: drain.max: drain.max (29s) is shorter than the upstream's timeout (30s): a restart may leave outcomes unknown; write drain.max above 30s",
  ],
  [
    'upstream: { timeout: 50s }',
    '1:22: upstream.timeout: drain.max (40s) is shorter than the upstream’s timeout (50s)'.replace('’', "'"),
  ],
  [
    'routes:\n  - path: /slow\n    upstream: { timeout: 2m }',
    '3:26: routes[0].upstream.timeout: drain.max (40s) is shorter',
  ],
  // State-changing methods
  ['defaults: { methods: [POST, PATCH, PUT] }'],
  [
    'defaults: { methods: [POST] }',
    '1:22: defaults.methods: leaves PATCH unguarded here: a retry of it runs again; add PATCH',
  ],
  [
    'routes: [{ path: /a, methods: [PUT] }]',
    '1:31: routes[0].methods: leave POST and PATCH unguarded here: a retry of it runs again; add POST and PATCH',
  ],
  ['routes: [{ path: /a, methods: [POST] }, { path: /a, methods: [PATCH], retention: 7d }]'],
  [
    'routes: [{ path: /a, methods: [POST] }, { path: /a, mode: off, methods: [PATCH] }]',
    '1:31: routes[0].methods: leaves PATCH',
  ],
  ['routes: [{ path: /hooks/*, mode: off }]'],
  ['defaults: { mode: off }', '1:19: defaults.mode: is off and no route enforces: nothing is guarded; '],
  [
    'defaults: { mode: off }\nroutes: [{ path: /a, mode: enforce }]',
    '1:19: defaults.mode: is off: a path that no route matches is not guarded, for instance that of a route in another letter case; write enforce, and mode: off on routes that need no keys',
  ],
  [
    'defaults: { mode: off }\nroutes: [{ path: /a, mode: enforce }]\nrouting: { ignoreCase: true }',
    '1:19: defaults.mode: is off: a path that no route matches is not guarded; write enforce, ',
  ],
  [
    'routes: [{ path: /a }, { path: /A/* }, { path: /a/*/* }]\nrouting: { ignoreCase: true }',
    '1:32: routes[1].path: can never match: ',
  ],
  [
    'defaults: { requireKey: false }',
    '1:25: defaults.requireKey: is false: a request without key passes through unguarded',
  ],
  // Routes that never match
  ['routes: [{ path: /a }, { path: /a/* }]'],
  [
    'routes: [{ path: /a }, { path: /a/* }, { path: /a/*/* }]',
    '1:32: routes[1].path: can never match: /a and /a/*/* are more specific and leave nothing; remove it',
  ],
  [
    'routes: [{ path: /o/:id/pay }]',
    '1:18: routes[0].path: takes :id literally, so it will hardly match; write /o/*/pay',
  ],
  ['routes: [{ path: "/o/{id}" }]', '1:18: routes[0].path: takes {id} literally'],
  // Others
  [
    'defaults: { fingerprint: { body: raw, ignore: [/a] } }',
    '1:47: defaults.fingerprint.ignore: has no effect with body: raw; remove one of them',
  ],
  ['store: { durability: relaxed }', '1:22: store.durability: is relaxed: a crash of PostgreSQL may lose'],
  ['store: { embedded: true }', '1:20: store.embedded: is for trying it out: a second replica'],
  ['store: { embedded: true }\nlisten: { data: 127.0.0.1:8080 }'],
  [
    'drain: { max: 1s }\nstore: { durability: relaxed }\ndefaults: { retention: 1m }',
    '1:15: drain.max',
    '2:22: store.durability',
    '3:24: defaults.retention',
  ],
];

for (const [config, ...expected] of table) {
  t.test(config.replaceAll('\n', '⏎') || '(empty)', async (t) => {
    const warnings = warningsOf(config);
    t.equal(warnings.length, expected.length, warnings.join('\n'));
    for (const [i, warning] of expected.entries()) {
      t.ok(warnings[i]?.startsWith(`f.yaml:${warning}`), `${warnings[i]} ⊇ ${warning}`);
    }
  });
}

t.test('a variable is named where it made the setting', async (t) => {
  t.match(warningsOf('', { ONCEGATE_DEFAULTS_RETENTION: '1m' }), [
    /^ONCEGATE_DEFAULTS_RETENTION: defaults\.retention: is 1m/,
  ]);
  t.same(warningsOf('', { ONCEGATE_UPSTRAEM_URL: 'http://a', ONCEGATE_CONFIG: 'x' }), [
    'the variable ONCEGATE_UPSTRAEM_URL sets nothing: no field has this name; did you mean ONCEGATE_UPSTREAM_URL?',
  ]);
});
