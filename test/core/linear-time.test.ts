import t from 'tap';
import { compilePolicies, configOf } from '../../src/config/config.ts';
import { configSchema } from '../../src/config/schema.ts';
import { canonicalForm } from '../../src/core/canonical-form.ts';
import { canonicalJson } from '../../src/core/canonical-json.ts';
import { canonicalMultipart } from '../../src/core/canonical-multipart.ts';
import { fingerprintOf } from '../../src/core/fingerprint.ts';
import { ignoredBy } from '../../src/core/json-pointer.ts';
import { findKey } from '../../src/core/key.ts';
import { parseMediaType } from '../../src/core/media-type.ts';
import { createMemos } from '../../src/core/memos.ts';
import { ambiguousPath, framingFault, upstreamHeaders } from '../../src/core/request.ts';
import { clientHeaders, connectionNames, decodeStored, encodeStored } from '../../src/core/response.ts';
import { headersForClient } from '../../src/proxy/pass-through-headers.ts';
import { readHead } from '../../src/upstream/answer-head.ts';
import { type Growth, growthOf, linearLimit } from '../helpers/growth.ts';

const memos = createMemos();

/** What clients and upstreams may make as large as the limits allow costs no more than its length. */

const kb = 1_024;

/** `unit` again and again. */
const filled = (unit: string, size: number): string =>
  unit.repeat(Math.max(1, Math.floor(size / unit.length)));

/** `unit` as often as it fits, each with its own number. */
const numbered = (size: number, unit: (i: number) => string): string[] =>
  Array.from({ length: Math.max(1, Math.floor(size / unit(100_000).length)) }, (_, i) => unit(100_000 + i));

function grows(name: string, cases: readonly Growth[]): void {
  t.test(name, async (t) => {
    for (const one of cases) {
      const { twice, fourfold } = growthOf(one);
      const facts = `${one.name}: 2x the input costs ${twice.toFixed(1)}x, 4x costs ${fourfold.toFixed(1)}x`;
      t.ok(fourfold < linearLimit, facts);
    }
  });
}

function json(name: string, text: (size: number) => string, ignore: readonly string[] = []): Growth {
  const on = (size: number) => {
    const body = Buffer.from(text(size));
    const ignored = ignoredBy(ignore);
    return () => canonicalJson(body, ignored);
  };
  return { name, size: 240 * kb, on };
}

grows('JSON bodies', [
  json('many members', (size) => `{${numbered(size, (i) => `"name-${i}":1`).join()}}`),
  json(
    'many members, the last first',
    (size) =>
      `{${numbered(size, (i) => `"n${i}":1`)
        .reverse()
        .join()}}`,
  ),
  json('many ignored members', (size) => `{"a":{${numbered(size, (i) => `"n${i}":1`).join()}}}`, [
    '/a/n100000',
    '/b',
  ]),
  json(
    'long names with one beginning',
    (size) => `{${Array.from({ length: 64 }, (_, i) => `"${filled('x', size / 64)}${i}":1`).join()}}`,
  ),
  json('many elements', (size) => `[${filled('0,', size)}0]`),
  json('many ignored elements', (size) => `[${filled('0,', size)}0]`, ['/1', '/70000']),
  json(
    'many objects in a list, each with an ignored member',
    (size) => `[${filled('{"a":1,"b":2},', size)}0]`,
    ['/1/a'],
  ),
  json('nothing but brackets', (size) => filled('[', size)),
  json('objects that do not end', (size) => filled('{"a":', size)),
  json('lists in objects that do not end', (size) => filled('{"a":[', size)),
  json('lists that do not end', (size) => filled('[[],', size)),
  json('a member again and again', (size) => filled('{"a":1,', size)),
  json('backslashes', (size) => filled('\\', size)),
  json('many shallow lists', (size) => `[${filled('[[]],', size)}0]`),
  json(
    '64 levels, with much inside',
    (size) => `${filled('[', 63)}[${filled('[0],', size)}0]${filled(']', 63)}`,
  ),
  json('64 levels, each with many elements', (size) => {
    const level = filled('0,', size / 64);
    return `${filled(`[${level}`, level.length * 63 + 63)}[0]${filled(`]`, 63)}`;
  }),
  json('64 objects deep', (size) => `${filled('{"a":', 5 * 63)}"${filled('x', size)}"${filled('}', 63)}`),
  json('a long string', (size) => `"${filled('x', size)}"`),
  json('a long string that does not end', (size) => `"${filled('x', size)}`),
  json('quotes in a string', (size) => `"${filled('\\"', size)}"`),
  json('escapes in a string', (size) => `"${filled('\\u00e9', size)}"`),
  json('many strings with escapes', (size) => `[${filled('"\\u0061",', size)}0]`),
  json('lone surrogates', (size) => `"${filled('\\ud800', size)}"`),
  json('letters of several bytes', (size) => `"${filled('é€', size)}"`),
  json('a long number', (size) => filled('1', size)),
  json('a long fraction and exponent', (size) => `1.${filled('0', size)}e1${filled('0', size)}`),
  json('white space', (size) => `${filled(' \n', size)}0${filled(' \n', size)}`),
  json('minus signs', (size) => `[${filled('-', size)}]`),
]);

function form(name: string, text: (size: number) => string, ignore: readonly string[] = []): Growth {
  const on = (size: number) => {
    const body = Buffer.from(text(size));
    const ignored = ignoredBy(ignore);
    return () => canonicalForm(body, ignored);
  };
  return { name, size: 240 * kb, on };
}

grows('form bodies', [
  form('a name of many brackets', (size) => `a${filled('[b]', size)}`, ['/a/c']),
  form('a name of brackets that never close', (size) => `a${filled('[', size)}`, ['/a/c']),
  form('many fields', (size) => numbered(size, (i) => `name${i}=1`).join('&')),
  form('many fields, the last first', (size) =>
    numbered(size, (i) => `n${i}=1`)
      .reverse()
      .join('&'),
  ),
  form('many names that begin alike', (size) =>
    Array.from({ length: 64 }, (_, i) => `${filled('x', size / 64)}${i}=1`).join('&'),
  ),
  form('one name again and again', (size) => filled('a=1&', size)),
  form('empty fields', (size) => filled('&', size)),
  form('escapes', (size) => `a=${filled('%41', size)}`),
  form('equal signs', (size) => filled('=', size)),
  form('brackets', (size) => filled('[', size)),
  form('one long name', (size) => filled('a', size)),
]);

function multipart(
  name: string,
  boundary: (size: number) => string,
  text: (boundary: string, size: number) => string,
): Growth {
  const on = (size: number) => {
    const delimiter = boundary(size);
    const body = Buffer.from(text(delimiter, size), 'latin1');
    return () => canonicalMultipart(body, delimiter);
  };
  return { name, size: 240 * kb, on };
}

const b70 = 'b'.repeat(70);

grows('multipart bodies', [
  multipart(
    'a boundary that grows with the body, and near misses',
    (size) => 'b'.repeat(size / 64),
    (b, size) => `--${b}\r\n${filled('b', size)}`,
  ),
  multipart(
    'a boundary that grows, and near misses that begin as it does',
    (size) => 'b'.repeat(size / 64),
    (b, size) => `--${b}\r\n${filled(`\r\n--${b.slice(1)}`, size)}`,
  ),
  multipart(
    'near misses that end as the boundary does',
    () => b70,
    (b, size) => `--${b}\r\n${filled(`x${b}`, size)}`,
  ),
  multipart(
    'near misses that begin as the boundary does',
    () => b70,
    (b, size) => `--${b}\r\n${filled(`\r\n--${b.slice(1)}`, size)}`,
  ),
  multipart(
    'many parts',
    () => 'b',
    (b, size) => `${filled(`--${b}\r\n\r\n`, size)}--${b}--`,
  ),
  multipart(
    'nothing but line ends',
    () => 'b',
    (b, size) => `--${b}\r\n${filled('\r\n', size)}--${b}--`,
  ),
  multipart(
    'nothing but hyphens',
    () => '-',
    (b, size) => `--${b}\r\n${filled('-', size)}`,
  ),
]);

function text(name: string, make: (size: number) => string, work: (text: string) => unknown): Growth {
  const on = (size: number) => {
    const made = make(size);
    return () => work(made);
  };
  return { name, size: 16 * kb, on };
}

const readType = (value: string) => parseMediaType(memos, value);

grows('Content-Type', [
  text('many parameters', (size) => `a/b${numbered(size, (i) => `;p${i}=1`).join('')}`, readType),
  text(
    'parameters, the last first',
    (size) =>
      `a/b${numbered(size, (i) => `;p${i}=1`)
        .reverse()
        .join('')}`,
    readType,
  ),
  text('semicolons', (size) => `a/b${filled(';', size)}`, readType),
  text('spaces', (size) => `a/b;${filled(' ', size)}x`, readType),
  text('spaces first', (size) => `${filled(' ', size)}a`, readType),
  text('a name without a value', (size) => `a/b;${filled('x', size)}`, readType),
  text('a quoted value', (size) => `a/b;p="${filled('x', size)}"`, readType),
  text('a quoted value that does not end', (size) => `a/b;p="${filled('x', size)}`, readType),
  text('escapes that do not end', (size) => `a/b;p="${filled('\\"', size)}`, readType),
  text('quotes', (size) => `a/b${filled(';p="";', size)}"`, readType),
  text('slashes', (size) => filled('a/', size), readType),
]);

const limits = { minLength: 0, maxLength: 255 };
const keyIn = (value: string) => findKey(['Idempotency-Key', value], ['idempotency-key'], limits);

grows('keys', [
  text('a long bare key', (size) => filled('x', size), keyIn),
  text('a long quoted key', (size) => `"${filled('x', size)}"`, keyIn),
  text('a quoted key that does not end', (size) => `"${filled('\\"', size)}`, keyIn),
  text('spaces', (size) => `${filled(' ', size)}x${filled(' ', size)}`, keyIn),
  text(
    'names in Connection',
    (size) => filled('abcdefghijklmno,', size),
    (value) => findKey(['Connection', value], ['idempotency-key'], limits),
  ),
]);

function fields(name: string, make: (size: number) => string[], work: (flat: string[]) => unknown): Growth {
  const on = (size: number) => {
    const flat = make(size);
    return () => work(flat);
  };
  return { name, size: 16 * kb, on };
}

/** As many names in Connection as there are other fields; none of them is named. */
const namedAndOthers = (size: number): string[] => [
  'Connection',
  numbered(size / 2, (i) => `x${i}`).join(),
  ...numbered(size / 2, (i) => `y${i}`).flatMap((name) => [name, '1']),
];
const manyConnections = (size: number): string[] =>
  numbered(size, (i) => `n${i}`).flatMap((name) => ['Connection', name]);
const manyFields = (size: number): string[] => numbered(size, (i) => `x-${i}`).flatMap((name) => [name, '1']);
const conditions = (size: number): string[] =>
  numbered(size, (i) => `If-${i}`)
    .reverse()
    .flatMap((name) => [name, '1']);
const oneAgain =
  (name: string, value: string) =>
  (size: number): string[] =>
    Array.from({ length: size / (name.length + value.length) }, () => [name, value]).flat();

const upstreamOptions = {
  sources: ['idempotency-key'],
  forwardKey: { kind: 'keep' },
  key: 'k',
  attempt: 'a',
  epoch: '1',
  forwarded: { for: 'a', proto: 'http', host: 'h' },
  host: 'h',
  requestId: 'r',
  tenantHeader: null,
} as const;
const toUpstream = (flat: string[]) => upstreamHeaders(memos, flat, upstreamOptions);
const framed = (rawHeaders: string[]) =>
  framingFault({ httpVersionMajor: 1, httpVersionMinor: 1, rawHeaders });
const printed = (rawHeaders: string[]) =>
  fingerprintOf(
    memos,
    { method: 'POST', path: '/', query: null, rawHeaders, body: Buffer.alloc(0) },
    { body: 'canonical', ignore: [], headers: [] },
  ).digest;

grows('header fields of a request', [
  fields('names in Connection and other fields', namedAndOthers, toUpstream),
  fields('many fields called Connection', manyConnections, (flat) => connectionNames(memos, flat)),
  fields('many fields', manyFields, toUpstream),
  fields(
    'many fields with _',
    (size) => numbered(size, (i) => `x_${i}`).flatMap((name) => [name, '1']),
    toUpstream,
  ),
  fields('many transfer codings', oneAgain('Transfer-Encoding', 'gzip'), framed),
  fields('many content types', oneAgain('Content-Type', 'a/b'), printed),
  fields('conditions', conditions, printed),
  fields('one condition again and again', oneAgain('If-Match', '"1"'), printed),
  fields('many content codings', oneAgain('Content-Encoding', 'gzip'), printed),
  fields('a list of content codings', (size) => ['Content-Encoding', filled('gzip ,', size)], printed),
  fields('spaces in content codings', (size) => ['Content-Encoding', `a${filled(' ', size)}a`], printed),
]);

const stored = (flat: string[]) => decodeStored(memos, encodeStored(memos, flat));
const passedObject = (size: number) => ({
  connection: numbered(size / 2, (i) => `x${i}`).join(),
  ...Object.fromEntries(numbered(size / 2, (i) => `y${i}`).map((name) => [name, '1'])),
});
const bytes = (flat: string[]): Buffer[] => flat.map((item) => Buffer.from(item));
const headOf = (raw: Buffer[]) => readHead('POST', 200, raw);

grows('header fields of an answer', [
  fields('names in Connection and other fields', namedAndOthers, (flat) => clientHeaders(memos, flat)),
  {
    name: 'the same, passed through',
    size: 16 * kb,
    on: (size) => {
      const headers = passedObject(size);
      return () => headersForClient(memos, headers, 'r');
    },
  },
  fields('many fields, stored and read', manyFields, stored),
  fields('a long value, stored and read', (size) => ['x', filled('x', size)], stored),
  {
    name: 'a stored list that is none',
    size: 16 * kb,
    on: (size) => {
      const list = Buffer.from(`\x01${filled('\0', size)}`);
      return () => decodeStored(memos, list);
    },
  },
  ...[
    ['outcomes', oneAgain('Oncegate-Outcome', 'executed')],
    ['a list of outcomes', (size: number) => ['Oncegate-Outcome', filled('executed ,', size)]],
    ['spaces in an outcome', (size: number) => ['Oncegate-Outcome', `a${filled(' ', size)}a`]],
    ['transfer codings', (size: number) => ['Transfer-Encoding', filled(' chunked ', size)]],
    ['spaces in transfer codings', (size: number) => ['Transfer-Encoding', `chunked${filled(' ', size)}x`]],
  ].map(
    ([name, make]): Growth => ({
      name: name as string,
      size: 16 * kb,
      on: (size) => {
        const raw = bytes((make as (size: number) => string[])(size));
        return () => headOf(raw);
      },
    }),
  ),
]);

const patterns = ['/a/*/b/*/c', '/a/*/*/*/c', '/*/*/*/*/*/*/*/x', '/a/*', '/a/*/b/*'];
const settings = configSchema.parse({ routes: patterns.map((path) => ({ path })) });
const routed = compilePolicies(configOf(settings, []), 'http://127.0.0.1:3000');
const policyOf = (path: string) => routed.policyFor('POST', path);

grows('paths', [
  text('dots', (size) => filled('/.', size), ambiguousPath),
  text('dots in the middle of a segment', (size) => filled('/a..', size), ambiguousPath),
  text('escaped dots', (size) => filled('/%2e%2ea', size), ambiguousPath),
  text('percent signs', (size) => `/${filled('%41', size)}%`, ambiguousPath),
  text('many segments and wildcards', (size) => filled('/a', size), policyOf),
  text('segments that almost fit', (size) => filled('/a/x/b/x', size), policyOf),
  text('a long segment', (size) => `/a/${filled('a', size)}`, policyOf),
  text('parameters', (size) => filled('/a;x', size), policyOf),
  text('semicolons', (size) => `/${filled(';', size)}`, policyOf),
  text('escapes', (size) => `/${filled('%61', size)}`, policyOf),
  text('dot segments', (size) => `${filled('/a', size)}${filled('/..', size)}`, policyOf),
  text('a trailing slash', (size) => `${filled('/a', size)}/`, policyOf),
]);
