import type { Ignored } from './json-pointer.ts';
import { type Cursor, readPlain, readString, skipSpace } from './json-token.ts';
import { differByCase } from './letter-case.ts';

/**
 * One spelling for all JSON documents that say the same: members sorted, white space dropped, strings decoded.
 * Numbers keep their spelling, for JSON.parse would merge 12345678901234567890 with …891, two different payments.
 * On purpose not RFC 8785. Iterative: no document, however deep, reaches the end of our stack.
 */

/** Deeper documents are compared by their raw bytes. Bounds our frames for a body of nothing but brackets. */
const maxDepth = 64;

/**
 * Of the whole document. More is compared by its raw bytes: 1 MB of tiny values would take a quarter of a second, for which everybody
 * else would wait.
 */
const maxValues = 10_000;

/** Stands for an ignored element: dropping it would make [1,2] and [2] equal. It is not JSON, so no value equals it. */
const ignoredElement = '~';
/** Marks an ignored member until its object closes, for its name still counts as a duplicate. No value is empty. */
const ignoredMember = '';

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const openArray = 0x5b;
const openObject = 0x7b;
const closeObject = 0x7d;

const utf8 = new TextDecoder('utf-8', { fatal: true });

interface Frame {
  /** The byte that ends it. */
  readonly close: number;
  /** Where its items begin on the shared stack. */
  readonly base: number;
  readonly ignored: Ignored | undefined;
  /** Of the item under way. */
  itemIgnored: Ignored | undefined;
  name: string;
}

interface Reading extends Cursor {
  /** The items of all open containers: one stack, so that none allocates its own. An element has no name. */
  readonly names: string[];
  readonly values: string[];
  items: number;
}

/**
 * The canonical text, one character for each byte of UTF-8. null where there is none: broken JSON, invalid UTF-8, a
 * byte order mark, a duplicate member, two that differ by letter case alone, depth over 64, over 10,000 values.
 */
export function canonicalJson(body: Buffer, ignored: Ignored | null): string | null {
  const text = byteText(body);
  if (text === null) return null;
  const r: Reading = { body, text, at: skipSpace(body, 0), names: [], values: [], items: 0 };
  const root = ignored ?? undefined;
  const frames: Frame[] = [];
  let frame: Frame | undefined;
  for (let values = 0; values < maxValues; values++) {
    const code = body[r.at];
    let value: string | null;
    if (code === openObject || code === openArray) {
      if (frames.length === maxDepth) return null;
      frame = openFrame(r, code, frame === undefined ? root : frame.itemIgnored);
      frames.push(frame);
      if (body[r.at] !== frame.close) {
        if (!beginItem(r, frame)) return null;
        continue;
      }
      r.at++;
      value = closeFrame(r, frame);
      frames.pop();
      frame = frames[frames.length - 1];
    } else {
      value = code === quote ? readString(r) : readPlain(r);
    }
    // A value has ended: it may end the containers around it too.
    for (;;) {
      if (value === null) return null;
      r.at = skipSpace(body, r.at);
      if (frame === undefined) {
        if (r.at !== body.length) return null;
        return root?.whole ? ignoredElement : value;
      }
      endItem(r, frame, value);
      const next = body[r.at++];
      if (next === comma) {
        r.at = skipSpace(body, r.at);
        if (!beginItem(r, frame)) return null;
        break;
      }
      if (next !== frame.close) return null;
      value = closeFrame(r, frame);
      frames.pop();
      frame = frames[frames.length - 1];
    }
  }
  return null;
}

function byteText(body: Buffer): string | null {
  try {
    const text = utf8.decode(body);
    return text.length === body.length ? text : body.toString('latin1');
  } catch {
    return null;
  }
}

function openFrame(r: Reading, open: number, ignored: Ignored | undefined): Frame {
  r.at = skipSpace(r.body, r.at + 1);
  // In ASCII each closing bracket stands two after its opening one.
  return { close: open + 2, base: r.items, ignored, itemIgnored: undefined, name: '' };
}

/** Reads the member's name, if it is one; after it a value has to follow. */
function beginItem(r: Reading, frame: Frame): boolean {
  if (frame.close === closeObject) {
    if (r.body[r.at] !== quote) return false;
    const name = readString(r);
    if (name === null) return false;
    r.at = skipSpace(r.body, r.at);
    if (r.body[r.at] !== colon) return false;
    r.at = skipSpace(r.body, r.at + 1);
    frame.name = name;
    frame.itemIgnored = frame.ignored?.below.get(name);
  } else if (frame.ignored !== undefined) {
    frame.itemIgnored = frame.ignored.below.get(`"${r.items - frame.base}"`);
  }
  return true;
}

function endItem(r: Reading, frame: Frame, value: string): void {
  if (frame.itemIgnored?.whole) value = frame.close === closeObject ? ignoredMember : ignoredElement;
  r.names[r.items] = frame.name;
  r.values[r.items++] = value;
}

function closeFrame(r: Reading, frame: Frame): string | null {
  const { base } = frame;
  const { names, values, items: end } = r;
  r.items = base;
  if (frame.close !== closeObject) return `[${joinElements(values, base, end)}]`;
  if (!sortMembers(r, base, end) || differByCase(names.slice(base, end))) return null;
  let members = '';
  for (let i = base; i < end; i++) {
    const value = values[i] as string;
    if (value === ignoredMember) continue;
    members += members === '' ? `${names[i]}:${value}` : `,${names[i]}:${value}`;
  }
  return `{${members}}`;
}

function joinElements(values: readonly string[], base: number, end: number): string {
  if (end - base > few) return values.slice(base, end).join(',');
  let elements = base === end ? '' : (values[base] as string);
  for (let i = base + 1; i < end; i++) elements += `,${values[i]}`;
  return elements;
}

/** Up to here, working on the stack itself is faster than a copy and the built-in join and sort. */
const few = 32;

/** Sorts by spelling, which is as good as any fixed order; equal spellings are equal names. false: a name came twice. */
function sortMembers(r: Reading, base: number, end: number): boolean {
  const { names, values } = r;
  if (end - base > few) return sortMany(r, base, end);
  for (let i = base + 1; i < end; i++) {
    const name = names[i] as string;
    const value = values[i] as string;
    let j = i - 1;
    while (j >= base && name < (names[j] as string)) {
      names[j + 1] = names[j] as string;
      values[j + 1] = values[j] as string;
      j--;
    }
    if (j >= base && name === names[j]) return false;
    names[j + 1] = name;
    values[j + 1] = value;
  }
  return true;
}

function sortMany(r: Reading, base: number, end: number): boolean {
  const names = r.names.slice(base, end);
  const values = r.values.slice(base, end);
  const order = names.map((_, i) => i);
  order.sort((a, b) => ((names[a] as string) < (names[b] as string) ? -1 : 1));
  for (let i = 0; i < order.length; i++) {
    const from = order[i] as number;
    if (i > 0 && names[from] === r.names[base + i - 1]) return false;
    r.names[base + i] = names[from] as string;
    r.values[base + i] = values[from] as string;
  }
  return true;
}
