import type { Ignored } from './json-pointer.ts';
import { spell } from './json-token.ts';
import { differByCase } from './letter-case.ts';
import { part } from './parts.ts';

/** More than any server reads from a form; bounds the sorting. */
const maxFields = 4096;

interface Field {
  readonly name: string;
  /** null: no `=` came; to Rack that is not the empty text. */
  readonly value: string | null;
}

/**
 * Fields sorted by decoded name, order kept among equal names. null where parsers may see other fields than we do. What is
 * ignored leaves nothing; where something may be and two of the rest may meet, these stay in their order.
 */
export function canonicalForm(body: Buffer, ignored: Ignored | null): string | null {
  const all = readFields(body);
  if (all === null) return null;
  const fields = ignored === null ? all : withoutIgnored(all, ignored);
  if (!mayMeet(fields)) fields.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  else if (ignored === null) return null;
  let text = '';
  for (const { name, value } of fields) text += value === null ? `${part(name)}-` : part(name) + part(value);
  return text;
}

function withoutIgnored(fields: readonly Field[], ignored: Ignored): Field[] {
  return fields.filter(({ name }) => !isIgnored(name, ignored));
}

const nestedName = /^([^[\]]+)((?:\[[^[\]]*\])+)$/;

/** `/nonce` is the field `nonce`, `/metadata/sentAt` the field `metadata[sentAt]`; each with all in brackets behind it. */
function isIgnored(name: string, ignored: Ignored): boolean {
  const text = Buffer.from(name, 'latin1').toString('utf8');
  const nested = nestedName.exec(text);
  const steps =
    nested === null ? [text] : [nested[1] as string, ...(nested[2] as string).slice(1, -1).split('][')];
  let place: Ignored | undefined = ignored;
  for (const step of steps) {
    place = place.below.get(spell(step));
    if (place === undefined) return false;
    if (place.whole) return true;
  }
  return false;
}

/**
 * Without controls, space, brackets and dot: PHP makes `_` of some of them and cuts a name at a NUL, and many servers read brackets
 * and dots as a path.
 */
const plainName = /^[!-\-/-Z\\^-~\x80-\xff]*$/;

/** Whether an upstream may read two of the names as one: then it matters which comes first. */
function mayMeet(fields: readonly Field[]): boolean {
  for (const { name } of fields) if (!plainName.test(name)) return true;
  return differByCase([...new Set(fields.map((field) => field.name))]);
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
    fields.push({ name, value: middle === -1 ? null : text.slice(middle, end) });
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
