import { readsAs } from './fold-name.ts';
import type { Memos } from './memos.ts';
import { connectionNames } from './response.ts';

const names = ['authorization', 'cookie', 'x-api-key'] as const;

/**
 * Whether a request says who asks, under any punctuation of the header's name, as some upstreams read it. An empty header says
 * nothing, and one that `Connection` names does not reach the upstream: taken for credentials, either would be given what the
 * upstream answered to another caller.
 */
export function hasCredentials(memos: Memos, rawHeaders: readonly string[]): boolean {
  let named: ReadonlySet<string> | null = null;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (!isCredential(name) || (rawHeaders[i + 1] as string).trim() === '') continue;
    named ??= connectionNames(memos, rawHeaders);
    if (!named.has(name.toLowerCase())) return true;
  }
  return false;
}

function isCredential(name: string): boolean {
  for (const one of names) if (readsAs(name, one)) return true;
  return false;
}
