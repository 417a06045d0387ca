import { hash } from 'node:crypto';
import { foldName, readsAs } from './fold-name.ts';
import type { Memos } from './memos.ts';
import { byFirst, parts } from './parts.ts';
import type { HeaderDigest } from './record.ts';
import { connectionNames } from './response.ts';

/**
 * In the `stripe` dialect these always count: one key and body under another account is another charge. Stripe-Context is what Stripe
 * has put in the place of Stripe-Account; both are in use.
 */
const stripeAccount = ['stripe-account', 'stripe-context'] as const;

/** What counts under a policy; `headers` as the config has them. */
export function countedHeaders(headers: readonly string[], dialect: 'ietf' | 'stripe'): readonly string[] {
  return dialect === 'stripe' ? [...headers, ...stripeAccount] : headers;
}

/** The headers that a rule counts. */
export interface HeaderList {
  /** Names the list, whatever its order. */
  readonly id: string;
  readonly names: readonly string[];
}

/** `headers` as a rule has them. null: the list is empty. */
export function headerListOf(headers: readonly string[]): HeaderList | null {
  if (headers.length === 0) return null;
  const names = [...new Set(headers.map(foldName))].sort();
  return { id: hash('sha256', parts(names), 'hex').slice(0, 32), names };
}

/**
 * Of the headers that `fingerprint.headers` lists, as the upstream gets them: a name under any punctuation, values in the order
 * in which they came. An absent header is not an empty one.
 */
export function headerDigestOf(
  memos: Memos,
  rawHeaders: readonly string[],
  { id, names }: HeaderList,
): HeaderDigest {
  const removed = connectionNames(memos, rawHeaders);
  const found: [folded: string, name: string, value: string][] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    const counted = names.find((one) => readsAs(name, one));
    if (counted === undefined) continue;
    const lower = name.toLowerCase();
    if (!removed.has(lower)) found.push([counted, lower, rawHeaders[i + 1] as string]);
  }
  return { list: id, digest: hash('sha256', parts(found.sort(byFirst).flat()), 'hex') };
}
