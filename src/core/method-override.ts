import { readsAs } from './fold-name.ts';
import { guardableMethods } from './policy.ts';

/**
 * Some services run a request as the method that one of these headers names: `X-HTTP-Method-Override` makes a GET a POST.
 * Oncegate cannot tell whether the service behind it does, so it reckons with both methods. A method in the query or in a
 * form field (`_method`) is not looked for.
 */
export function isMethodOverride(name: string): boolean {
  switch (name.length) {
    case 13:
      return readsAs(name, 'x-http-method');
    case 17:
      return readsAs(name, 'x-method-override');
    case 22:
      return readsAs(name, 'x-http-method-override');
    default:
      return false;
  }
}

const none: readonly string[] = [];

/**
 * Methods that can be guarded and that override headers name. Services differ in how they read a list, quotes or lower
 * case: each word counts.
 */
export function overridingMethods(rawHeaders: readonly string[]): readonly string[] {
  let found = none;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (isMethodOverride(rawHeaders[i] as string)) found = withWords(found, rawHeaders[i + 1] as string);
  }
  return found;
}

function withWords(found: readonly string[], value: string): readonly string[] {
  const words = new Set(value.toUpperCase().split(/[^A-Z]+/));
  return [...found, ...guardableMethods.filter((method) => words.has(method) && !found.includes(method))];
}
