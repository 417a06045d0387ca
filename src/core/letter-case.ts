const hasCase = /[A-Z\x80-\xff]/;
const beyondAscii = /[\x80-\xff]/;

/**
 * Whether any two of the names, none of which comes twice, differ by letter case alone. ASP.NET and Go read such names as one, and
 * the last of them counts. Names hold one character for each byte of UTF-8.
 */
export function differByCase(names: readonly string[]): boolean {
  if (!names.some((name) => hasCase.test(name))) return false;
  return new Set(names.map(withoutCase)).size < names.length;
}

/** Upper case first: `ſ` and `s` have the same one. */
function withoutCase(name: string): string {
  if (!beyondAscii.test(name)) return name.toLowerCase();
  return Buffer.from(name, 'latin1').toString('utf8').toUpperCase().toLowerCase();
}
