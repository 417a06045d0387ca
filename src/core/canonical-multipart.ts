import { part } from './parts.ts';

/** RFC 2046, 5.1.1: 1 to 70 characters, the last no space. Readers differ in what they make of others. */
const boundarySyntax = /^[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]$/;

/**
 * What stands between the delimiters: preamble, parts, epilogue (RFC 2046, 5.1.1). null where a lenient reader could see
 * other parts. The boundary of a multipart inside a part is left as it is.
 */
export function canonicalMultipart(body: Buffer, boundary: string): string | null {
  if (!boundarySyntax.test(boundary)) return null;
  const text = body.toString('latin1');
  const delimiter = `\r\n--${boundary}`;
  // The first delimiter needs no line before it.
  let end = text.startsWith(delimiter.slice(2)) ? -2 : find(text, delimiter, 0);
  if (end === -1) return null;
  let pieces = part(text.slice(0, Math.max(end, 0)));
  for (;;) {
    const after = end + delimiter.length;
    if (text.startsWith('--', after)) return pieces + part(text.slice(after + 2));
    if (!text.startsWith('\r\n', after)) return null;
    end = find(text, delimiter, after + 2);
    if (end === -1) return null;
    pieces += part(text.slice(after + 2, end));
  }
}

/**
 * As indexOf, in linear time: that one compares from the end of what it searches, and near misses then cost the length of the
 * boundary for each byte. No boundary holds a line end, so a comparison from the front stops before the next possible start.
 */
function find(text: string, delimiter: string, from: number): number {
  let at = text.indexOf('\r\n--', from);
  while (at !== -1 && !text.startsWith(delimiter, at)) at = text.indexOf('\r\n--', at + 4);
  return at;
}
