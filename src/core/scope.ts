import { hash } from 'node:crypto';
import type { Memos } from './memos.ts';

/** What may be part of a scope, in the words of the config. */
export type ScopePart = 'tenant' | 'endpoint';

export interface Place {
  readonly tenant: string | null;
  readonly method: string;
  /** Raw, without its query. */
  readonly path: string;
}

export function scopeAt(memos: Memos, { tenant, method, path }: Place, parts: readonly ScopePart[]): Buffer {
  return parts.includes('endpoint') ? scopeOf(memos, [tenant, method, path]) : scopeOf(memos, [tenant]);
}

/**
 * Who and where a key counts. Each part carries its length, so that no two lists of parts read the same when joined
 * (["a", "bc"] and ["ab", "c"]); an absent part (null) is not an empty one.
 */
export function scopeOf({ scopes }: Memos, parts: readonly (string | null)[]): Buffer {
  let text = '';
  for (const part of parts) text += part === null ? '-' : `${part.length}:${part}`;
  const known = scopes.get(text);
  if (known !== undefined) return known;
  const scope = Buffer.allocUnsafeSlow(32);
  // One-shot hashing to a string is three times faster than asking for a Buffer.
  scope.write(hash('sha256', text, 'binary'), 'binary');
  scopes.keep(text, scope);
  return scope;
}
