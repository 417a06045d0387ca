import t from 'tap';
import { hasCredentials } from '../../src/core/credentials.ts';

t.test('what counts as credentials', (t) => {
  for (const name of ['Authorization', 'COOKIE', 'x-api-key', 'X-Api-Key', 'X_Api_Key', 'x.api-KEY']) {
    t.equal(hasCredentials([name, 'x']), true, name);
    t.equal(hasCredentials(['Host', 'a', name, 'x']), true, `${name} behind others`);
    t.equal(hasCredentials([name, '']), false, `${name}, empty`);
    t.equal(hasCredentials([name, ' \t']), false, `${name}, blank`);
    t.equal(hasCredentials([name, '', name, 'x']), true, `${name}, empty and again`);
    t.equal(
      hasCredentials([name, 'x', 'Connection', `close, ${name}`]),
      false,
      `${name}, named by Connection`,
    );
    t.equal(hasCredentials(['connection', name.toLowerCase(), name, 'x']), false, `${name}, named before`);
    t.equal(hasCredentials([name, 'x', 'Connection', 'close']), true, `${name}, another named`);
  }
  t.equal(hasCredentials([]), false);
  t.equal(
    hasCredentials(['Accept', 'x', 'X-Trace-Id', 'x', 'Authorized', 'x']),
    false,
    'of that length only',
  );
  t.equal(hasCredentials(['Cookie', 'a', 'X-Api-Key', 'b', 'Connection', 'cookie']), true, 'one is left');
  t.end();
});
