import { spell } from './json-token.ts';

/** What is ignored at and below one place. Names are spelled as canonical strings, quotes included. */
export interface Ignored {
  whole: boolean;
  readonly below: Map<string, Ignored>;
}

const pointerSyntax = /^(?:\/(?:[^/~]|~[01])*)*$/;

/** RFC 6901. The empty pointer is one: it means the whole document. */
export function isJsonPointer(text: string): boolean {
  return pointerSyntax.test(text);
}

/** null: the list is empty, and all counts. What is no pointer ignores nothing. */
export function ignoredBy(ignore: readonly string[]): Ignored | null {
  if (ignore.length === 0) return null;
  const root: Ignored = { whole: false, below: new Map() };
  for (const pointer of ignore.filter(isJsonPointer)) {
    let place = root;
    for (const part of pointer.split('/').slice(1)) {
      const name = spell(part.replaceAll('~1', '/').replaceAll('~0', '~'));
      let next = place.below.get(name);
      if (next === undefined) {
        next = { whole: false, below: new Map() };
        place.below.set(name, next);
      }
      place = next;
    }
    place.whole = true;
  }
  return root;
}
