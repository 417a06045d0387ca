import { byFirst } from './parts.ts';
import { Remembered } from './remembered.ts';

export interface MediaType {
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

/** As they were spelled. */
const known = new Remembered<MediaType>(100, 64);

/** RFC 9110, 8.3.1. null: not a media type. */
export function parseMediaType(value: string): MediaType | null {
  const before = known.get(value);
  if (before !== undefined) return before;
  const type = parse(value);
  // A boundary is another one each time.
  if (type !== null && type.boundaries.length === 0) known.keep(value, type);
  return type;
}

function parse(value: string): MediaType | null {
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
