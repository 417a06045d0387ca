import { join } from 'node:path';
import t, { type Test } from 'tap';
import { inProcess } from './in-process.ts';

const file = (t: Test, text: string): string => join(t.testdir({ 'c.yaml': text }), 'c.yaml');

t.test('a good file: what is guarded, nothing else', async (t) => {
  const path = file(
    t,
    'upstream: { url: http://a:1 }\nstore: { url: postgres://h/d }\nroutes:\n  - { path: /v1/charges, outcomes: { preset: payments, 409: release }, retention: 7d }\n  - { path: /hooks/*, mode: off }\n',
  );
  t.same(await inProcess(['validate', '--config', path]), {
    code: 0,
    out: [
      `${path} is valid`,
      '',
      '  /v1/charges  guards POST, PATCH → http://a:1 (outcomes payments but for 409, answers kept 7d)',
      '  /hooks/*     passes everything through → http://a:1',
      '  other paths  guards POST, PATCH → http://a:1 (outcomes standard, answers kept 1d)',
      '',
    ].join('\n'),
    err: '',
  });
});

t.test('a store whose variable comes only where it runs is no fault; another variable is', async (t) => {
  const path = file(t, 'upstream: { url: http://a:1 }\nstore: { url: "${DATABASE_URL}" }\n');
  const { code, out, err } = await inProcess(['validate', '--config', path]);
  t.strictSame({ code, err }, { code: 0, err: '' });
  t.match(out, /1 warning\n! the variable DATABASE_URL of store\.url is not set here: serve will need it\n$/);
  t.match(await inProcess(['serve', '--config', path]), { code: 2, err: /DATABASE_URL is not set/ });
  const other = file(t, 'upstream: { url: "${UPSTREAM}" }\nstore: { url: "${}" }\n');
  t.match(await inProcess(['validate', '--config', other]), {
    code: 2,
    err: /UPSTREAM is not set[^]*names no variable/,
  });
});

t.test('the example', async (t) => {
  const { code, out } = await inProcess(['validate', '--config', 'config.example.yaml']);
  t.equal(code, 0);
  t.notMatch(out, 'warning');
});

t.test('risky settings: exit 0, each with its place', async (t) => {
  const path = file(t, 'defaults:\n  retention: 5m\n');
  const { code, out } = await inProcess(['validate', 'http://a:1', '--config', path]);
  t.equal(code, 0);
  t.match(out, `\n2 warnings\n! ${path}:2:14: defaults.retention: is 5m`);
  t.match(out, '! no store is named here: serve will need DATABASE_URL');
  const { out: one } = await inProcess(['validate', 'http://a:1'], {});
  t.match(one, /^the configuration is valid\n[^]*\n1 warning\n! no store/);
});

t.test('faults: exit 2, all at once', async (t) => {
  const path = file(t, 'upstream:\n  tmeout: 30s\nlease: 5\n');
  t.same(await inProcess(['validate', '--config', path]), {
    code: 2,
    out: '',
    err: `oncegate: the configuration has 2 faults\n${path}:2:3: upstream.tmeout: unknown field; did you mean timeout?\n${path}:3:8: lease: has no unit; write 5s\n`,
  });
  t.match(await inProcess(['validate']), { code: 2, err: /^oncegate: no upstream: / });
});

t.test('the file of ONCEGATE_CONFIG; a flag wins', async (t) => {
  const path = file(t, 'upstream: { url: http://from-variable }');
  const env = { ONCEGATE_CONFIG: path };
  t.match((await inProcess(['validate'], env)).out, `${path} is valid`);
  t.match(await inProcess(['validate', '--config', '/nowhere.yaml'], env), { code: 2, err: /nowhere/ });
});

t.test('a directory where a file should be', async (t) => {
  const dir = t.testdir({});
  t.match(await inProcess(['validate', '--config', dir]), {
    code: 2,
    err: /is a directory; Docker makes one where the file to be mounted does not exist\n$/,
  });
});

t.test('a secret in a fault is not shown', async (t) => {
  const path = file(t, 'upstream: { url: http://a:1 }\nstore: { url: "mysql://root:hunter2@h/d" }');
  const { code, err } = await inProcess(['validate', '--config', path]);
  t.equal(code, 2);
  t.notMatch(err, 'hunter2');
});
