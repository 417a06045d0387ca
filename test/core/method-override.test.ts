import t from 'tap';
import { overridingMethods } from '../../src/core/method-override.ts';

t.test('the methods that a request may run as', async (t) => {
  const rows: [rawHeaders: string[], methods: string[]][] = [
    [[], []],
    [['Host', 'a', 'Cache-Control', 'POST', 'Transfer-Encoding', 'POST', 'Sec-WebSocket-Protoc', 'POST'], []],
    [['X-HTTP-Method-Override', 'POST'], ['POST']],
    [['x-http-method', 'post'], ['POST']],
    [['X_Method_Override', 'Patch'], ['PATCH']],
    [['X.HTTP.METHOD.OVERRIDE', '\tPUT '], ['PUT']],
    [['X-HTTP-Method-Override', 'GET, "DELETE"'], ['DELETE']],
    [
      ['X-HTTP-Method-Override', 'DELETE,POST', 'X-HTTP-Method', 'POST', 'X-Method-Override', 'PUT'],
      ['POST', 'DELETE', 'PUT'],
    ],
    [['X-HTTP-Method-Override', '', 'X-HTTP-Method', 'GET', 'X-Method-Override', 'POSTPONE'], []],
    [['Y-HTTP-Method-Override', 'POST', 'X-HTTP-Method-Overrides', 'POST'], []],
  ];
  for (const [rawHeaders, methods] of rows)
    t.same(overridingMethods(rawHeaders), methods, rawHeaders.join(' '));
});
