import type { Memos } from './memos.ts';
import { byFirst } from './parts.ts';

export interface MediaType {
  readonly essence: string;
  /** Names and values in turn, sorted by name; without the charset where UTF-8 is what it would be anyway. */
  readonly parameters: readonly string[];
  /** Of multipart: not among the parameters, for clients choose a new one each try. */
  readonly boundaries: readonly string[];
  /** It names a charset other than UTF-8: an upstream may read other characters than we would. */
  readonly otherCharset: boolean;
}

const utf8 = /^utf-?8$/i;

const token = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";
const essenceSyntax = new RegExp(`^[ \\t]*(${token}/${token})[ \\t]*`);
const parameterSyntax = new RegExp(`^;[ \\t]*(?:(${token})=(?:(${token})|"((?:[^"\\\\]|\\\\.)*)"))?[ \\t]*`);

export function isJson(essence: string): boolean {
  return essence === 'application/json' || essence === 'text/json' || essence.endsWith('+json');
}

export function isForm(essence: string): boolean {
  return essence === 'application/x-www-form-urlencoded';
}

/** RFC 9110, 8.3.1. null: not a media type. */
export function parseMediaType({ mediaTypes }: Memos, value: string): MediaType | null {
  const known = mediaTypes.get(value);
  if (known !== undefined) return known;
  const type = parse(value);
  // A boundary is another one each time.
  if (type !== null && type.boundaries.length === 0) mediaTypes.keep(value, type);
  return type;
}

function parse(value: string): MediaType | null {
  const start = essenceSyntax.exec(value);
  if (start === null) return null;
  const essence = (start[1] as string).toLowerCase();
  const boundaries: string[] = [];
  const parameters: [name: string, value: string][] = [];
  let otherCharset = false;
  let rest = value.slice(start[0].length);
  while (rest !== '') {
    const match = parameterSyntax.exec(rest);
    if (match === null) return null;
    rest = rest.slice(match[0].length);
    // A semicolon with nothing behind it is allowed.
    if (match[1] === undefined) continue;
    const name = match[1].toLowerCase();
    const text = match[2] ?? (match[3] as string).replace(/\\(.)/g, '$1');
    if (namesOtherCharset(name, text)) otherCharset = true;
    if (name === 'boundary' && essence.startsWith('multipart/')) boundaries.push(text);
    else parameters.push([name, text]);
  }
  // These are in UTF-8 by themselves: one client says so, another does not.
  // Most multipart types: each try has a boundary of its own, so they are not remembered.
  if (parameters.length === 0) return { essence, parameters: [], boundaries, otherCharset };
  const isPlain = !otherCharset && (isJson(essence) || isForm(essence));
  const counting = isPlain ? parameters.filter(([name]) => name !== 'charset') : parameters;
  return { essence, parameters: counting.sort(byFirst).flat(), boundaries, otherCharset };
}

/** `charset*` and `charset*0` are RFC 2231's way to write it, which few servers read. */
function namesOtherCharset(name: string, value: string): boolean {
  if (name === 'charset') return !utf8.test(value);
  return name.startsWith('charset*');
}
