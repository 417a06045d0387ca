import { part } from './parts.ts';

/** More than any server reads from a form; bounds the sorting. */
const maxFields = 4096;

interface Field {
  sortedBy: string;
  readonly name: string;
  /** null: no `=` came; to Rack that is not the empty text. */
  readonly value: string | null;
}

/** Fields sorted by decoded name, order kept among equal names. null where parsers may see other fields than we do. */
export function canonicalForm(body: Buffer): string | null {
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
