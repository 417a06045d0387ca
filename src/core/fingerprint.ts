import { hash } from 'node:crypto';
import { canonicalJson } from './canonical-json.ts';
import type { Fingerprint } from './record.ts';

/** What makes two requests "the same". Header text and target are one character a byte, as Node gives them. */
export interface FingerprintInput {
  readonly method: string;
  readonly path: string;
  /** Raw, without its `?`. null: there was no `?`, which is not the same target as an empty query. */
  readonly query: string | null;
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
}

export interface FingerprintRule {
  readonly body: 'canonical' | 'raw';
  /** JSON pointers of what does not count. */
  readonly ignore: readonly string[];
}

/** Part of every rule id: raise it when the same request would get another `digest` than before. */
const version = 'v1';

/** Every part carries its length and every form of body its own word, so that no two requests read the same. */
export function fingerprintOf(input: FingerprintInput, rule: FingerprintRule): Fingerprint {
  const headers = pickHeaders(input.rawHeaders);
  const query = input.query === null ? '-' : part(input.query);
  const start = `${part(input.method)}${part(input.path)}${query}${headers.conditions}`;
  // Hashed once, however large, and without a copy.
  const bodyHash = hash('sha256', input.body, 'hex');
  const raw = sha256(`raw ${start}${parts(headers.types)}${parts(headers.encodings)}${bodyHash}`);
  if (rule.body === 'raw') return { rule: ruleId(rule), digest: raw, raw };
  const content = describeContent(headers, { body: input.body, bodyHash }, rule.ignore);
  return { rule: ruleId(rule), digest: sha256(`${version} ${start}${content}`), raw };
}

const plainRules = { canonical: `${version}:canonical`, raw: `${version}:raw` };
const ignoreRules = new WeakMap<readonly string[], string>();

/** Names what `digest` means. Digests of other ids are not compared, only `raw` is. */
export function ruleId(rule: FingerprintRule): string {
  // Raw bodies have no members to ignore.
  if (rule.body === 'raw' || rule.ignore.length === 0) return plainRules[rule.body];
  let id = ignoreRules.get(rule.ignore);
  if (id === undefined) {
    const list = parts([...new Set(rule.ignore)].sort());
    id = `${plainRules.canonical}:${hash('sha256', list, 'hex').slice(0, 32)}`;
    ignoreRules.set(rule.ignore, id);
  }
  return id;
}

function part(text: string): string {
  return `${text.length}:${text}`;
}

function parts(list: readonly string[]): string {
  let text = `${list.length};`;
  for (const item of list) text += part(item);
  return text;
}

/** One-shot hashing to a string is three times faster than asking for a Buffer. */
function sha256(text: string): Buffer {
  return Buffer.from(hash('sha256', text, 'binary'), 'binary');
}

interface Picked {
  /** If-* headers by name, their order kept where one came twice. */
  readonly conditions: string;
  readonly types: readonly string[];
  readonly encodings: readonly string[];
}

function pickHeaders(rawHeaders: readonly string[]): Picked {
  const types: string[] = [];
  const encodings: string[] = [];
  const conditions: [name: string, value: string][] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    const value = rawHeaders[i + 1] as string;
    // Lengths and one letter first: most headers then cost no lower-casing.
    if (name.length === 12 && name.toLowerCase() === 'content-type') types.push(value);
    else if (name.length === 16 && name.toLowerCase() === 'content-encoding') encodings.push(value);
    else if ((name.charCodeAt(0) | 0x20) === 0x69 && name.slice(0, 3).toLowerCase() === 'if-') {
      conditions.push([name.toLowerCase(), value]);
    }
  }
  return { conditions: parts(conditions.sort(byFirst).flat()), types, encodings };
}

/** For stable sorts: what is equal stays in its order. */
function byFirst(a: readonly [string, ...unknown[]], b: readonly [string, ...unknown[]]): number {
  if (a[0] === b[0]) return 0;
  return a[0] < b[0] ? -1 : 1;
}

/** Media type, content-encoding and body: in canonical form where the body has one, otherwise its raw bytes. */
function describeContent(
  headers: Picked,
  { body, bodyHash }: { body: Buffer; bodyHash: string },
  ignore: readonly string[],
): string {
  const encodings = codingsOf(headers.encodings);
  const type = headers.types.length === 1 ? parseMediaType(headers.types[0] as string) : null;
  if (type === null) return `raw ${parts(encodings)}${parts(headers.types)}${bodyHash}`;
  const start = `${parts(encodings)}${part(type.essence)}${parts(type.parameters)}`;
  if (encodings.length === 0) {
    const canonical = canonicalBody(type, body, ignore);
    if (canonical !== null) return `${canonical.form} ${start}${canonical.text}`;
  }
  return `other ${start}${parts(type.boundaries)}${bodyHash}`;
}

/** Content codings in the order they were applied; `identity` is none. */
function codingsOf(encodings: readonly string[]): readonly string[] {
  if (encodings.length === 0) return encodings;
  const codings = encodings.join(',').toLowerCase().split(',');
  return codings.map((coding) => coding.trim()).filter((coding) => coding !== '' && coding !== 'identity');
}

interface Canonical {
  readonly form: 'json' | 'form' | 'multipart';
  readonly text: string;
}

function canonicalBody(type: MediaType, body: Buffer, ignore: readonly string[]): Canonical | null {
  const { essence, boundaries } = type;
  if (essence === 'application/json' || essence === 'text/json' || essence.endsWith('+json')) {
    return canonical('json', canonicalJson(body, ignore));
  }
  if (essence === 'application/x-www-form-urlencoded') return canonical('form', canonicalForm(body));
  if (boundaries.length !== 1) return null;
  return canonical('multipart', canonicalMultipart(body, boundaries[0] as string));
}

function canonical(form: Canonical['form'], text: string | null): Canonical | null {
  return text === null ? null : { form, text };
}

interface MediaType {
  readonly essence: string;
  /** Names and values in turn, sorted by name. */
  readonly parameters: readonly string[];
  /** Of multipart: not among the parameters, for clients choose a new one each try. */
  readonly boundaries: readonly string[];
}

const token = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";
const essenceSyntax = new RegExp(`^[ \\t]*(${token}/${token})[ \\t]*`);
const parameterSyntax = new RegExp(
  `;[ \\t]*(?:(${token})=(?:(${token})|"((?:[^"\\\\]|\\\\.)*)"))?[ \\t]*`,
  'y',
);

/** RFC 9110, 8.3.1. null: not a media type. */
function parseMediaType(value: string): MediaType | null {
  const start = essenceSyntax.exec(value);
  if (start === null) return null;
  const essence = (start[1] as string).toLowerCase();
  const boundaries: string[] = [];
  const parameters: [name: string, value: string][] = [];
  let at = start[0].length;
  while (at < value.length) {
    parameterSyntax.lastIndex = at;
    const match = parameterSyntax.exec(value);
    if (match === null) return null;
    at = parameterSyntax.lastIndex;
    // A semicolon with nothing behind it is allowed.
    if (match[1] === undefined) continue;
    const name = match[1].toLowerCase();
    const text = match[2] ?? (match[3] as string).replace(/\\(.)/g, '$1');
    if (name === 'boundary' && essence.startsWith('multipart/')) boundaries.push(text);
    else parameters.push([name, text]);
  }
  return { essence, parameters: parameters.sort(byFirst).flat(), boundaries };
}

/** More than any server reads from a form; bounds the sorting. */
const maxFields = 4096;

interface Field {
  sortedBy: string;
  readonly name: string;
  /** null: no `=` came; to Rack that is not the empty text. */
  readonly value: string | null;
}

/** Fields sorted by decoded name, order kept among equal names. null where parsers may see other fields than we do. */
function canonicalForm(body: Buffer): string | null {
  const fields = readFields(body);
  if (fields === null) return null;
  // To Rack and PHP `a[]` and `a[][b]` mean "the next one": then the order among all fields of `a` matters.
  if (fields.some((field) => field.name.includes('[]'))) {
    for (const field of fields) field.sortedBy = field.name.split('[', 1)[0] as string;
  }
  fields.sort((a, b) => (a.sortedBy < b.sortedBy ? -1 : a.sortedBy > b.sortedBy ? 1 : 0));
  let text = '';
  for (const { name, value } of fields) text += value === null ? `${part(name)}-` : part(name) + part(value);
  return text;
}

/** Decodes to bytes, whatever the charset. Empty fields are none, as to every server. */
function readFields(body: Buffer): Field[] | null {
  const decoded = Buffer.allocUnsafe(body.length);
  const ends: number[] = [];
  let to = 0;
  let start = 0;
  let nameEnd = -1;
  for (let at = 0; at <= body.length; at++) {
    // The end of the body ends a field just as `&` does.
    const code = at < body.length ? (body[at] as number) : 0x26;
    if (code === 0x26) {
      if (to > start || nameEnd !== -1) ends.push(start, nameEnd, to);
      if (ends.length > 3 * maxFields) return null;
      start = to;
      nameEnd = -1;
    } else if (code === 0x3d && nameEnd === -1) {
      nameEnd = to;
    } else if (code === 0x25) {
      const byte = hexByte(body, at + 1);
      if (byte === -1) return null;
      decoded[to++] = byte;
      at += 2;
    } else {
      // No encoder leaves these as they are. Some parsers also split at `;`.
      if (code <= 0x20 || code >= 0x7f || code === 0x3b) return null;
      decoded[to++] = code === 0x2b ? 0x20 : code;
    }
  }
  const text = decoded.toString('latin1', 0, to);
  const fields: Field[] = [];
  for (let i = 0; i < ends.length; i += 3) {
    const [from, middle, end] = [ends[i] as number, ends[i + 1] as number, ends[i + 2] as number];
    const name = text.slice(from, middle === -1 ? end : middle);
    fields.push({ sortedBy: name, name, value: middle === -1 ? null : text.slice(middle, end) });
  }
  return fields;
}

/** The byte that two hexadecimal digits say, or -1. */
function hexByte(body: Buffer, at: number): number {
  const high = hexDigit(body[at]);
  const low = hexDigit(body[at + 1]);
  return high === -1 || low === -1 ? -1 : high * 16 + low;
}

function hexDigit(code = 0): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/**
 * What stands between the delimiters: preamble, parts, epilogue (RFC 2046, 5.1.1). null where a lenient reader could see
 * other parts. The boundary of a multipart inside a part is left as it is.
 */
function canonicalMultipart(body: Buffer, boundary: string): string | null {
  const text = body.toString('latin1');
  const delimiter = `\r\n--${boundary}`;
  // The first delimiter needs no line before it.
  let end = text.startsWith(delimiter.slice(2)) ? -2 : text.indexOf(delimiter);
  if (boundary === '' || end === -1) return null;
  let pieces = part(text.slice(0, Math.max(end, 0)));
  for (;;) {
    const after = end + delimiter.length;
    if (text.startsWith('--', after)) return pieces + part(text.slice(after + 2));
    if (!text.startsWith('\r\n', after)) return null;
    end = text.indexOf(delimiter, after + 2);
    if (end === -1) return null;
    pieces += part(text.slice(after + 2, end));
  }
}
