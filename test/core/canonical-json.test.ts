import fc from 'fast-check';
import t from 'tap';
import { canonicalJson } from '../../src/core/canonical-json.ts';
import { ignoredBy, isJsonPointer } from '../../src/core/json-pointer.ts';
import { alikeDocuments, brokenDocuments, type JsonDocument } from './json-documents.ts';

/** As readable text: the canonical form itself has one character for each byte of UTF-8. */
function canonical(text: string | Buffer, ...ignore: string[]): string | null {
  const form = canonicalJson(Buffer.from(text as string), ignoredBy(ignore));
  return form === null ? null : Buffer.from(form, 'latin1').toString();
}

t.test('white space goes, members are sorted, everything else stays', (t) => {
  const cases: [document: string, form: string][] = [
    ['{}', '{}'],
    [' [ ] ', '[]'],
    ['\t{\r\n"b" : [ 1 , 2 ] , "a" :{ } }\n', '{"a":{},"b":[1,2]}'],
    ['[3,1,2]', '[3,1,2]'],
    ['{"b":{"d":1,"c":[{"z":0,"y":0}]},"a":null}', '{"a":null,"b":{"c":[{"y":0,"z":0}],"d":1}}'],
    ['true', 'true'],
    [' false ', 'false'],
    ['null', 'null'],
    ['"a"', '"a"'],
    ['-0.10E+5', '-0.10E+5'],
    ['[true,false,null,"",0]', '[true,false,null,"",0]'],
  ];
  for (const [document, form] of cases) t.equal(canonical(document), form, document);
  t.end();
});

t.test('numbers are compared by their spelling', (t) => {
  const numbers = ['1', '1.0', '1e0', '1E0', '1e+0', '10e-1', '-1', '0', '-0', '0.0', '1e400', '2e400'];
  numbers.push('12345678901234567890', '12345678901234567891', '9007199254740992', '9007199254740993');
  const forms = numbers.map((number) => canonical(`{"amount":${number}}`));
  t.strictSame(
    forms,
    numbers.map((number) => `{"amount":${number}}`),
  );
  for (const broken of [
    '01',
    '-',
    '+1',
    '1.',
    '.5',
    '1e',
    '1e+',
    '-01',
    '1.e1',
    '0x1',
    'NaN',
    'Infinity',
    '1_0',
    '1 2',
  ]) {
    t.equal(canonical(broken), null, broken);
  }
  t.end();
});

t.test('strings are compared decoded', (t) => {
  const same: [a: string, b: string][] = [
    ['"\\u0041"', '"A"'],
    ['"\\/"', '"/"'],
    ['"\\u000a"', '"\\n"'],
    ['"\\u0022\\u005C"', '"\\"\\\\"'],
    ['"\\b\\f\\r\\t"', '"\\u0008\\u000C\\u000d\\u0009"'],
    ['"é€😀"', '"\\u00e9\\u20AC\\ud83d\\uDE00"'],
    ['"\\u001F"', '"\\u001f"'],
    ['"\x7f\u2028"', '"\\u007f\\u2028"'],
    ['"é\\/"', '"\\u00e9/"'],
    ['{"\\u0061":1}', '{"a":1}'],
    ['{"\\u00e9":1,"e":2}', '{"e":2,"é":1}'],
  ];
  for (const [a, b] of same) {
    // Without names for these: U+2028 in one breaks the report.
    t.not(canonical(a), null);
    t.equal(canonical(a), canonical(b));
  }
  for (const broken of [
    '"',
    '"a',
    '"\\',
    '"\\"',
    '"\\x"',
    '"\\u12"',
    '"\\u12g4"',
    '"\\U0041"',
    '"\n"',
    '"\x00"',
    "'a'",
  ]) {
    t.equal(canonical(broken), null, JSON.stringify(broken));
  }
  t.end();
});

t.test('a document of more than 10,000 values has no canonical form', (t) => {
  const array = (count: number) => `[${Array.from({ length: count }, () => '0').join()}]`;
  const object = (count: number) => `{${Array.from({ length: count }, (_, i) => `"n${i}":[]`).join()}}`;
  t.type(canonical(array(9_999)), 'string', 'the array counts too');
  t.equal(canonical(array(10_000)), null);
  t.type(canonical(object(9_999)), 'string');
  t.equal(canonical(object(10_000)), null);
  t.equal(canonical(`[${array(5_000)},${array(5_000)}]`), null, 'in all');
  t.end();
});

t.test('what looks alike stays apart', (t) => {
  const documents = [
    '"\\ud800"',
    '"\\udc00"',
    '"\\udfff"',
    '"\\ufffd"',
    '"\\ud800\\ud800"',
    '"\\\\ud800"',
    '"\\udc00\\ud800"',
  ];
  documents.push(
    '"é"',
    '"e\u0301"',
    '"Ã©"',
    '""',
    '"~"',
    '~',
    '"1"',
    '1',
    'null',
    '"null"',
    '[]',
    '{}',
    '[[]]',
    '[{}]',
  );
  documents.push(
    '[1,2]',
    '[12]',
    '["1,2"]',
    '{"a":{"b":1}}',
    '{"a":[{"b":1}]}',
    '{"a":1,"b":2}',
    '{"a":"1,\\"b\\":2"}',
  );
  const forms = documents.map((document) => canonical(document) ?? `none: ${document}`);
  t.equal(new Set(forms).size, documents.length);
  t.equal(forms.filter((form) => form.startsWith('none')).length, 1, 'all but one are JSON');
  t.end();
});

t.test('no canonical form: broken documents, duplicates, depth, bytes that are not UTF-8', (t) => {
  const broken = [
    '',
    ' ',
    '{',
    '[',
    '}',
    ']',
    '{"a"}',
    '{"a":}',
    '{"a":1',
    '{"a":1,}',
    '{,}',
    '[1,]',
    '[,1]',
    '[1 2]',
    '[1}',
  ];
  broken.push(
    '{a:1}',
    '{"a" 1}',
    '{"a":1]',
    '{1:1}',
    '{1}',
    '{"a":1,2}',
    'tru',
    'True',
    'nul',
    'fals',
    'truefalse',
    '1 1',
    '{}{}',
    '[]]',
    '{"a":1,"b"',
    '{"\\x":1}',
  );
  broken.push('[1]x', '/**/1', '\v1', '\u00a01', '{"a":1;"b":2}', '["a\\u00"]');
  for (const document of broken) t.equal(canonical(document), null, JSON.stringify(document));

  t.equal(canonical('{"a":1,"a":1}'), null);
  t.equal(canonical('{"a":1,"b":2,"\\u0061":3}'), null, 'by decoded name');
  t.equal(canonical('[{"x":{"é":1,"\\u00e9":1}}]'), null);
  t.equal(
    canonical('{"a":{"a":1},"b":{"a":1}}'),
    '{"a":{"a":1},"b":{"a":1}}',
    'the same name elsewhere is fine',
  );
  t.equal(canonical('{"__proto__":1,"constructor":2}'), '{"__proto__":1,"constructor":2}');

  t.equal(canonical('['.repeat(64) + ']'.repeat(64)), '['.repeat(64) + ']'.repeat(64));
  t.equal(canonical('['.repeat(65) + ']'.repeat(65)), null);
  t.equal(canonical(`${'{"a":['.repeat(32)}{}${']}'.repeat(32)}`), null);
  t.equal(canonical(`[${'[],'.repeat(100)}[]]`), `[${'[],'.repeat(100)}[]]`, 'depth is not length');

  for (const bytes of [
    [0x22, 0xff, 0x22],
    [0x22, 0xc0, 0xaf, 0x22],
    [0x22, 0xed, 0xa0, 0x80, 0x22],
    [0x22, 0xe9, 0x22],
  ]) {
    t.equal(canonical(Buffer.from(bytes)), null, String(bytes));
  }
  t.equal(canonical('\ufeff{}'), null, 'a byte order mark');
  t.end();
});

t.test('large objects and arrays, sorted and joined another way', (t) => {
  const names = Array.from({ length: 500 }, (_, i) => `n${(i * 7919) % 500}`);
  const document = (list: string[]) => `{${list.map((name) => `"${name}":"${name}"`).join()}}`;
  t.equal(canonical(document(names)), canonical(document([...names].reverse())));
  t.equal(canonical(document(names)), document([...names].map((name) => name).sort()));
  t.equal(canonical(document([...names, 'n7'])), null, 'a duplicate among many');
  const inside = (inner: string) => `{"a":0,"b":${inner}}`;
  const sorted = document([...names, 'a'].sort());
  t.equal(canonical(inside(document([...names, 'a']))), inside(sorted), 'a name of the object around');
  t.equal(canonical(inside('{"b":1,"a":2}')), inside('{"a":2,"b":1}'), 'also in a small one');
  const list = `[${names.map((_, i) => i).join()}]`;
  t.equal(canonical(inside(list)), inside(list));
  t.equal(canonical(`[${names.map((_, i) => ` ${i}`).join()}]`), `[${names.map((_, i) => i).join()}]`);
  t.end();
});

t.test('ignored members are dropped, ignored elements leave a mark', (t) => {
  const same = (a: string, b: string, ...ignore: string[]) => {
    t.not(canonical(a, ...ignore), null, a);
    t.equal(canonical(a, ...ignore), canonical(b, ...ignore), `${a} and ${b} without ${ignore.join()}`);
  };
  const differ = (a: string, b: string, ...ignore: string[]) =>
    t.not(canonical(a, ...ignore), canonical(b, ...ignore), `${a} and ${b} without ${ignore.join()}`);

  same('{"a":1,"ts":1}', '{"ts":[{"x":2}],"a":1}', '/ts');
  same('{"a":1,"ts":1}', '{"a":1}', '/ts');
  differ('{"a":1,"ts":1}', '{"a":2,"ts":1}', '/ts');
  differ('{"a":1,"b":{"ts":1}}', '{"a":1,"b":{"ts":2}}', '/ts');
  same('{"a":1,"b":{"ts":1,"c":0}}', '{"a":1,"b":{"ts":2,"c":0}}', '/b/ts', '/b/x', '/c');
  differ('{"b":{"ts":1,"c":0}}', '{"b":{"ts":1,"c":1}}', '/b/ts');
  same('{"a/b":1,"m~n":1,"":1,"é":1}', '{"a/b":2,"m~n":2,"":2,"\\u00e9":2}', '/a~1b', '/m~0n', '/', '/é');
  differ('{"~1":1}', '{"~1":2}', '/~1');
  same('{"~1":1}', '{"~1":2}', '/~01');
  same('{"a":1,"\\u0062":1}', '{"a":1,"b":2}', '/b');
  same('[{"id":1},{"id":5}]', '[{"id":2},{"id":5}]', '/0/id');
  differ('[{"id":1},{"id":5}]', '[{"id":1},{"id":6}]', '/0/id');
  same('[1,2]', '[3,2]', '/0');
  differ('[1,2]', '[2]', '/0');
  differ('[1]', '[]', '/0');
  t.equal(canonical('{"x":0,"y":[1,[2,3,4]]}', '/y/1/2'), '{"x":0,"y":[1,[2,3,~]]}');
  differ('["~"]', '["x"]', '/1');
  differ('[1,2]', '[1,3]', '/01', '/-', '/2');
  same('{"-":1}', '{"-":2}', '/-');
  same('{"a":1}', '[2]', '');
  t.equal(canonical('{"a":', ''), null, 'ignored is not unread');
  t.equal(canonical('{"ts":1,"ts":1}', '/ts'), null, 'a duplicate stays one');
  t.equal(canonical('{"ts":tru}', '/ts'), null);
  differ('{"a":1}', '{"a":2}', 'a', '#/a', '/~', '/~2');

  const list = ignoredBy(['/a']);
  t.equal(canonicalJson(Buffer.from('{"a":1}'), list), '{}');
  t.equal(
    canonicalJson(Buffer.from('{"a":1,"b":2}'), list),
    '{"b":2}',
    'a list is for any number of documents',
  );
  t.end();
});

t.test('JSON pointers', (t) => {
  for (const pointer of ['', '/', '/a', '/a/b', '//', '/a~0b~1c', '/é', '/0/-'])
    t.ok(isJsonPointer(pointer), pointer);
  for (const text of ['a', '#/a', 'a/b', '/~', '/~2', '/a/~', ' /a']) t.notOk(isJsonPointer(text), text);
  t.end();
});

/** The same document, spelled another way: members in another order, other white space, other escapes. */
function respelled(value: unknown, random: () => number): string {
  const space = () => ' \t\r\n'.slice(0, Math.floor(random() * 5)).slice(Math.floor(random() * 4));
  const unit = (text: string, i: number) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`;
  const respell = (point: string) =>
    random() < 0.5
      ? JSON.stringify(point).slice(1, -1)
      : [...Array(point.length).keys()].map((i) => unit(point, i)).join('');
  const escaped = (text: string) => `"${Array.from(text, (point) => respell(point)).join('')}"`;
  const item = (inner: unknown): string => space() + respelled(inner, random) + space();
  if (Array.isArray(value)) return `[${value.map(item).join()}]`;
  if (typeof value === 'string') return escaped(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(
    ([name, inner]) => `${space()}${escaped(name)}${space()}:${item(inner)}`,
  );
  return `{${members.sort(() => random() - 0.5).join()}}`;
}

/** Whether two members of one object differ by letter case alone. */
function hasTwins(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const names = Array.isArray(value) ? [] : Object.keys(value);
  const apart = new Set(names.map((name) => name.toUpperCase().toLowerCase()));
  return apart.size < names.length || Object.values(value).some(hasTwins);
}

t.test('order, white space and escapes never matter; any other change does', (t) => {
  const document = fc.jsonValue({ maxDepth: 4, stringUnit: 'grapheme' }).filter((one) => !hasTwins(one));
  fc.assert(
    fc.property(
      document,
      fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true })),
      (value, stream) => {
        const random = () => stream.next().value;
        const form = canonical(JSON.stringify(value));
        return form !== null && form === canonical(respelled(value, random));
      },
    ),
  );
  const sortedKeys = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(sortedKeys);
    if (typeof value !== 'object' || value === null) return value;
    return Object.entries(value)
      .map(([name, inner]) => [name, sortedKeys(inner)] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1));
  };
  const small = fc.jsonValue({ maxDepth: 2 }).filter((one) => !hasTwins(one));
  fc.assert(
    fc.property(small, small, (a, b) => {
      const equal = JSON.stringify([typeof a, sortedKeys(a)]) === JSON.stringify([typeof b, sortedKeys(b)]);
      return equal || canonical(JSON.stringify(a)) !== canonical(JSON.stringify(b));
    }),
  );
  t.end();
});

function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const own = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce((sum, inner) => sum + countMembers(inner), own);
}

t.test('it accepts what JSON.parse accepts, and gives a document that means the same', (t) => {
  const pieces = [
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '\\',
    '"a"',
    '"b"',
    '""',
    '\\u00',
    '1',
    '0',
    '-',
    '.',
    'e',
    '+',
    'true',
    'null',
    ' ',
    '\n',
    '\x01',
    'é',
  ];
  const accepts = (text: string) => {
    let parsed: unknown;
    try {
      parsed = JSON.parse(text);
    } catch {
      return canonical(text) === null;
    }
    const form = canonical(text);
    // What JSON.parse takes and we do not has a duplicate member, of which it keeps one, or two that differ by case alone.
    if (form === null)
      return (
        hasTwins(parsed) ||
        countMembers(parsed) < text.replace(/"(?:[^"\\]|\\.)*"/g, '').split(':').length - 1
      );
    t.strictSame(JSON.parse(form), parsed);
    return true;
  };
  const soup = fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((list) => list.join(''));
  const damaged = fc
    .tuple(fc.json({ maxDepth: 3 }), fc.nat(), fc.constantFrom(...pieces), fc.nat({ max: 2 }))
    .map(
      ([text, at, piece, cut]) =>
        text.slice(0, at % (text.length + 1)) + piece + text.slice((at % (text.length + 1)) + cut),
    );
  fc.assert(fc.property(soup, accepts), { numRuns: 2000 });
  fc.assert(fc.property(damaged, accepts), { numRuns: 1000 });
  t.end();
});

t.test('documents that mean the same share a form, and broken ones have none', (t) => {
  const seen = new Map<string, string>();
  for (const [first, ...others] of alikeDocuments) {
    const { name, body } = first as JsonDocument;
    const form = canonicalJson(body, null) as string;
    t.equal(typeof form, 'string', name);
    t.equal(seen.get(form), undefined, `${name} has a form of its own`);
    seen.set(form, name);
    for (const other of others) t.equal(canonicalJson(other.body, null), form, `${other.name} is ${name}`);
  }
  for (const { name, body } of brokenDocuments) t.equal(canonicalJson(body, null), null, name);
  t.end();
});
