import { part } from './parts.ts';

/**
 * What stands between the delimiters: preamble, parts, epilogue (RFC 2046, 5.1.1). null where a lenient reader could see
 * other parts. The boundary of a multipart inside a part is left as it is.
 */
export function canonicalMultipart(body: Buffer, boundary: string): string | null {
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
