import t from 'tap';
import { hasCredentials } from '../../src/core/credentials.ts';
import { createMemos } from '../../src/core/memos.ts';

const memos = createMemos();

t.test('what counts as credentials', (t) => {
  for (const name of ['Authorization', 'COOKIE', 'x-api-key', 'X-Api-Key', 'X_Api_Key', 'x.api-KEY']) {
    t.equal(hasCredentials(memos, [name, 'x']), true, name);
    t.equal(hasCredentials(memos, ['Host', 'a', name, 'x']), true, `${name} behind others`);
    t.equal(hasCredentials(memos, [name, '']), false, `${name}, empty`);
    t.equal(hasCredentials(memos, [name, ' \t']), false, `${name}, blank`);
    t.equal(hasCredentials(memos, [name, '', name, 'x']), true, `${name}, empty and again`);
    t.equal(
      hasCredentials(memos, [name, 'x', 'Connection', `close, ${name}`]),
      false,
      `${name}, named by Connection`,
    );
    t.equal(
      hasCredentials(memos, ['connection', name.toLowerCase(), name, 'x']),
      false,
      `${name}, named before`,
    );
    t.equal(hasCredentials(memos, [name, 'x', 'Connection', 'close']), true, `${name}, another named`);
  }
  t.equal(hasCredentials(memos, []), false);
  t.equal(
    hasCredentials(memos, ['Accept', 'x', 'X-Trace-Id', 'x', 'Authorized', 'x']),
    false,
    'of that length only',
  );
  t.equal(
    hasCredentials(memos, ['Cookie', 'a', 'X-Api-Key', 'b', 'Connection', 'cookie']),
    true,
    'one is left',
  );
  t.end();
});
