import fc from 'fast-check';
import t from 'tap';
import { findKey, formatKey, parseKey } from '../../src/core/key.ts';

const limits = { minLength: 0, maxLength: 255 };
const sources = ['idempotency-key', 'x-idempotency-key'];
const find = (...rawHeaders: string[]) => findKey(rawHeaders, sources, limits);
const key = (text: string) => ({ kind: 'key', key: text });

t.test('bare values: visible ASCII, 1 to 255 bytes', (t) => {
  for (const value of [
    'a',
    '8e03978e-40d5-43dd-bc93-6894a57f9324',
    'a+b/c==',
    "'x'",
    'a"b',
    'a\\b',
    '!~',
    'a,b;c=d',
  ]) {
    t.strictSame(parseKey(value, limits), key(value), value);
  }
  t.strictSame(parseKey('x'.repeat(255), limits), key('x'.repeat(255)));
  for (const value of ['a b', 'a\tb', '\ta', 'a\x7f', 'a\x00', 'caf\xe9', '\xa0a', 'a\xa0', 'a\n']) {
    t.match(parseKey(value, limits), { kind: 'invalid', detail: /visible ASCII/ }, JSON.stringify(value));
  }
  t.match(parseKey('x'.repeat(256), limits), { kind: 'invalid', detail: /too long.*255/ });
  t.end();
});

t.test('quoted values: one RFC 8941 string, and nothing else', (t) => {
  t.strictSame(parseKey('"a b"', limits), key('a b'));
  t.strictSame(parseKey('" "', limits), key(' '));
  t.strictSame(parseKey(String.raw`"a\"b\\c"`, limits), key(String.raw`a"b\c`));
  t.strictSame(
    parseKey(`"${'\\"'.repeat(255)}"`, limits),
    key('"'.repeat(255)),
    'the content counts, not its escapes',
  );
  t.match(parseKey(`"${'\\"'.repeat(256)}"`, limits), { kind: 'invalid', detail: /too long/ });
  for (const value of [
    '"',
    '"a',
    '"a"b',
    '"a";p=1',
    '"a", "b"',
    '"a\\b"',
    '"a\\',
    '"a\\"',
    '"\t"',
    '"\x7f"',
    '"\xe9"',
  ]) {
    t.match(parseKey(value, limits), { kind: 'invalid', detail: /one quoted string/ }, JSON.stringify(value));
  }
  t.match(parseKey('""', limits), { kind: 'invalid', detail: /too short/ });
  t.end();
});

t.test('spaces around either form do not count; an empty value is invalid', (t) => {
  t.strictSame(parseKey('  "a"  ', limits), key('a'));
  t.strictSame(parseKey('  a ', limits), key('a'));
  for (const value of ['', ' ', '    ']) {
    t.match(parseKey(value, limits), { kind: 'invalid', detail: /is empty/ }, JSON.stringify(value));
  }
  t.end();
});

t.test('the limits count the content', (t) => {
  const strict = { minLength: 3, maxLength: 4 };
  t.match(parseKey('"ab"', strict), { kind: 'invalid', detail: /too short.*3/ });
  t.strictSame(parseKey('"abc"', strict), key('abc'));
  t.strictSame(parseKey('abcd', strict), key('abcd'));
  t.match(parseKey('abcde', strict), { kind: 'invalid', detail: /too long.*4/ });
  t.end();
});

t.test('quoted and bare forms of one content are one key, and come back as they were', (t) => {
  const content = fc.string({
    unit: fc.integer({ min: 0x20, max: 0x7e }).map((c) => String.fromCharCode(c)),
    minLength: 1,
    maxLength: 255,
  });
  fc.assert(
    fc.property(content, (text) => {
      const quoted = `"${text.replace(/["\\]/g, '\\$&')}"`;
      t.strictSame(parseKey(quoted, limits), key(text));
      t.strictSame(parseKey(formatKey(text), limits), key(text));
    }),
    { numRuns: 50 },
  );
  t.equal(formatKey('abc'), 'abc');
  t.equal(formatKey('a b'), '"a b"');
  t.equal(formatKey('"a\\b'), String.raw`"\"a\\b"`);
  t.end();
});

t.test('finding it in the headers', (t) => {
  t.strictSame(find(), { kind: 'none' });
  t.strictSame(find('Host', 'a', 'Idempotency_Kex', 'x', 'Connection', 'close', 'Idempotency-Kez', 'x'), {
    kind: 'none',
  });
  t.strictSame(find('Host', 'a', 'IDEMPOTENCY-Key', 'k1', 'Connection', 'keep-alive'), key('k1'));
  t.strictSame(find('X-Idempotency-Key', '"k1"'), key('k1'));
  t.strictSame(findKey(['Idempotency-Key', 'k'], [], limits), { kind: 'none' });
  t.match(find('Idempotency-Key', 'a b'), { kind: 'invalid', detail: /visible/ });
  t.match(find('Idempotency-Key', ''), { kind: 'invalid', detail: /empty/ });
  t.end();
});

t.test('its name with other punctuation, which some services read as its name, is invalid', (t) => {
  for (const name of [
    'Idempotency_Key',
    'IDEMPOTENCY.KEY',
    'idempotency~key',
    'x_Idempotency-Key',
    'X.Idempotency.Key',
  ]) {
    t.match(
      find('A', 'a', name, 'k'),
      { kind: 'invalid', detail: /idempotency-key with other punctuation/ },
      name,
    );
    t.match(find('Idempotency-Key', 'k', name, 'k'), { kind: 'invalid' }, `${name} too`);
    t.match(find(name, 'k', 'Idempotency-Key', 'k'), { kind: 'invalid' }, `${name} first`);
  }
  const underscored = ['idempotency_key', 'idempotency-key'];
  for (const name of ['Idempotency_Key', 'Idempotency-Key'])
    t.strictSame(findKey([name, 'k'], underscored, limits), key('k'), 'unless it is a source itself');
  t.match(findKey(['Idempotency-Key', 'k'], ['idempotency_key'], limits), { kind: 'invalid' });
  t.end();
});

t.test('sent twice, even with one value, is invalid', (t) => {
  t.match(find('Idempotency-Key', 'a', 'idempotency-key', 'a'), {
    kind: 'invalid',
    detail: /idempotency-key was sent more than once/,
  });
  const between = find('Idempotency-Key', 'a', 'X-Idempotency-Key', 'a', 'Idempotency-Key', 'a');
  t.match(between, { kind: 'invalid', detail: /more than once/ });
  t.end();
});

t.test('two sources have to agree', (t) => {
  t.strictSame(find('X-Idempotency-Key', '"a"', 'Idempotency-Key', 'a'), key('a'));
  t.match(find('Idempotency-Key', 'a', 'X-Idempotency-Key', 'A'), {
    kind: 'invalid',
    detail: 'The headers idempotency-key and x-idempotency-key carry different keys. Send only one of them.',
  });
  t.match(find('Idempotency-Key', 'a', 'X-Idempotency-Key', ''), { kind: 'invalid', detail: /empty/ });
  t.end();
});

t.test('named by Connection is invalid, whether or not the key is there', (t) => {
  const lost = { kind: 'invalid', detail: /Connection header names idempotency-key/ };
  t.match(find('Idempotency-Key', 'a', 'Connection', 'keep-alive, Idempotency-Key'), lost);
  t.match(find('connection', ' IDEMPOTENCY-KEY ', 'Idempotency-Key', 'a'), lost);
  t.match(find('Connection', 'close', 'Connection', 'idempotency-key'), lost);
  t.strictSame(find('Idempotency-Key', 'a', 'Connection', 'close, te'), key('a'));
  t.strictSame(
    find('Idempotency-Key', 'a', 'User-Agent', 'idempotency-key', 'Xonnection', 'idempotency-key'),
    key('a'),
  );
  t.end();
});

t.test('no detail ever shows the key', (t) => {
  const secret = 'sEcReT';
  const values = [`${secret} x`, `"${secret}`, `"${secret}";a`, secret.repeat(100), `${secret}\x7f`];
  const results = [
    ...values.map((value) => find('Idempotency-Key', value)),
    find('Idempotency-Key', secret, 'Idempotency-Key', secret),
    find('Idempotency-Key', secret, 'X-Idempotency-Key', `${secret}2`),
    find('Idempotency-Key', secret, 'Connection', 'idempotency-key'),
    findKey(['Idempotency-Key', secret], sources, { minLength: 32, maxLength: 255 }),
  ];
  for (const result of results) {
    if (result.kind !== 'invalid') t.fail('should be invalid');
    else t.notMatch(result.detail, secret);
  }
  t.end();
});

/** As the public vectors have it for ASCII (public-vectors.test.ts), and for the bytes beyond. */
t.test('each byte in a quoted string: at its begin, in the midst, at its end, and after a backslash', (t) => {
  for (let code = 0; code <= 0xff; code++) {
    const byte = String.fromCharCode(code);
    const isPlain = code >= 0x20 && code <= 0x7e && byte !== '"' && byte !== '\\';
    const isEscapable = byte === '"' || byte === '\\';
    for (const [before, after] of [
      ['', ''],
      ['', 'a'],
      ['a', ''],
      ['a', 'b'],
      [' ', ' '],
    ] as const) {
      const name = `0x${code.toString(16)} between ${JSON.stringify([before, after])}`;
      const plain = parseKey(`"${before}${byte}${after}"`, limits);
      const escaped = parseKey(`"${before}\\${byte}${after}"`, limits);
      if (isPlain) t.strictSame(plain, key(`${before}${byte}${after}`), name);
      else t.equal(plain.kind, 'invalid', name);
      if (isEscapable) t.strictSame(escaped, key(`${before}${byte}${after}`), `${name}, escaped`);
      else t.equal(escaped.kind, 'invalid', `${name}, escaped`);
    }
  }
  t.end();
});

t.test('what may stand round a quoted string: spaces, and nothing else', (t) => {
  for (const [before, after] of [
    [' ', ''],
    ['', ' '],
    ['   ', '   '],
  ] as const)
    t.strictSame(parseKey(`${before}"a b"${after}`, limits), key('a b'), JSON.stringify([before, after]));
  for (const [before, after] of [
    ['\t', ''],
    ['', '\t'],
    ['\xa0', ''],
    ['', '\xa0'],
    ['', ';'],
    ['', ';a'],
    ['', '; a=1'],
    ['', ', "b"'],
    ['', ' "b"'],
    ['', '"'],
    ['', 'b'],
    ['', ','],
    ['(', ')'],
    ['?', ''],
    [':', ':'],
  ] as const)
    t.equal(parseKey(`${before}"a b"${after}`, limits).kind, 'invalid', JSON.stringify([before, after]));
  t.end();
});
