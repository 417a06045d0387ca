/** JSON's tokens, by hand and from bytes: what is read is the same text that was sent. */

const quote = 0x22;
const dot = 0x2e;
const zero = 0x30;
const nine = 0x39;
const backslash = 0x5c;

const short = 1;
const decoded = 2;
/** What may follow a backslash. JSON.stringify spells the short ones the same way, the others it decodes. */
const escapes: Readonly<Uint8Array> = escapeTable();

function escapeTable(): Uint8Array {
  const table = new Uint8Array(256);
  for (const code of Buffer.from('"\\bfnrt')) table[code] = short;
  for (const code of Buffer.from('/u')) table[code] = decoded;
  return table;
}

const asciiOnly = /^[ -~]*$/;

/** Where a reader stands. */
export interface Cursor {
  readonly body: Buffer;
  /** The body with one character for each byte, so that positions in both are the same. */
  readonly text: string;
  at: number;
}

export function skipSpace(body: Buffer, at: number): number {
  while (at < body.length) {
    const code = body[at] as number;
    if (code > 0x20 || (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09)) break;
    at++;
  }
  return at;
}

/** The string at `r.at` as JSON.stringify would spell it, quotes included. */
export function readString(r: Cursor): string | null {
  const { body } = r;
  const start = r.at;
  let asWritten = true;
  let at = start + 1;
  for (; at < body.length; at++) {
    const code = body[at] as number;
    if (code === quote) {
      r.at = at + 1;
      return asWritten ? r.text.slice(start, r.at) : respell(body.toString('utf8', start, r.at));
    }
    if (code < 0x20) return null;
    if (code === backslash) {
      const escape = escapes[body[++at] ?? 0];
      if (escape === 0) return null;
      if (escape === decoded) asWritten = false;
    }
  }
  return null;
}

/** Decodes and spells again. A lone surrogate stays an escape, so it equals neither another one nor U+FFFD. */
function respell(token: string): string | null {
  try {
    return spell(JSON.parse(token) as string);
  } catch {
    return null;
  }
}

export function spell(text: string): string {
  const token = JSON.stringify(text);
  return asciiOnly.test(token) ? token : Buffer.from(token).toString('latin1');
}

/** A number, true, false or null: as it is written. */
export function readPlain(r: Cursor): string | null {
  const start = r.at;
  switch (r.body[start]) {
    case 0x74:
      return readWord(r, 'true');
    case 0x66:
      return readWord(r, 'false');
    case 0x6e:
      return readWord(r, 'null');
  }
  r.at = numberEnd(r.body, start);
  return r.at < 0 ? null : r.text.slice(start, r.at);
}

function readWord(r: Cursor, word: string): string | null {
  if (!r.text.startsWith(word, r.at)) return null;
  r.at += word.length;
  return word;
}

/** Where the number that starts at `at` ends; -1 if none does. */
function numberEnd(body: Buffer, at: number): number {
  if (body[at] === 0x2d) at++;
  const first = at;
  at = digitsEnd(body, at);
  // No digit, or a zero before others.
  if (at === first || (at - first > 1 && body[first] === zero)) return -1;
  if (body[at] === dot) {
    const fraction = ++at;
    at = digitsEnd(body, at);
    if (at === fraction) return -1;
  }
  if (body[at] === 0x65 || body[at] === 0x45) {
    at++;
    if (body[at] === 0x2b || body[at] === 0x2d) at++;
    const exponent = at;
    at = digitsEnd(body, at);
    if (at === exponent) return -1;
  }
  return at;
}

function digitsEnd(body: Buffer, at: number): number {
  while (at < body.length) {
    const code = body[at] as number;
    if (code < zero || code > nine) break;
    at++;
  }
  return at;
}
