/**
 * Some servers read every character of a header name that is neither letter nor digit as one and the same (CGI, WSGI, and
 * others that make a variable of it): to them `Idempotency.Key` is `Idempotency-Key`. A name that we set, trust or remove
 * therefore counts under any punctuation.
 */
export function foldName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '-');
}

/** Whether both names fold to the same. Makes no garbage, and differs at the first letter for most. */
export function readsAs(name: string, other: string): boolean {
  if (name.length !== other.length) return false;
  for (let i = 0; i < name.length; i++) {
    if (foldCode(name.charCodeAt(i)) !== foldCode(other.charCodeAt(i))) return false;
  }
  return true;
}

/** `lower` folds to the header's name, and is another. */
export function isVariantOf(lower: string, header: string | null): boolean {
  return header !== null && lower !== header && readsAs(lower, header);
}

const hyphen = 0x2d;

function foldCode(code: number): number {
  const lower = code >= 0x41 && code <= 0x5a ? code + 0x20 : code;
  const isAlphanumeric = (lower >= 0x61 && lower <= 0x7a) || (lower >= 0x30 && lower <= 0x39);
  return isAlphanumeric ? lower : hyphen;
}
