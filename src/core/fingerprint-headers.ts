import { hash } from 'node:crypto';
import { foldName, readsAs } from './fold-name.ts';
import { byFirst, parts } from './parts.ts';
import type { HeaderDigest } from './record.ts';
import { connectionNames } from './response.ts';

/**
 * In the `stripe` dialect these always count: one key and body under another account is another charge. Stripe-Context is what Stripe
 * has put in the place of Stripe-Account; both are in use.
 */
const stripeAccount = ['stripe-account', 'stripe-context'];

/** What counts under a policy; `headers` as the config has them. */
export function countedHeaders(headers: readonly string[], dialect: 'ietf' | 'stripe'): readonly string[] {
  return dialect === 'stripe' ? [...headers, ...stripeAccount] : headers;
}

interface Counted {
  /** Names the list, whatever its order. */
  readonly id: string;
  readonly names: readonly string[];
}

/** Lists come from the config and live as long as it does. */
const lists = new WeakMap<readonly string[], Counted>();

function countedOf(list: readonly string[]): Counted {
  let counted = lists.get(list);
  if (counted === undefined) {
    const names = [...new Set(list.map(foldName))].sort();
    counted = { id: hash('sha256', parts(names), 'hex').slice(0, 32), names };
    lists.set(list, counted);
  }
  return counted;
}

/**
 * Of the headers that `fingerprint.headers` lists, as the upstream gets them: a name under any punctuation, values in the order
 * in which they came. An absent header is not an empty one. null: the list is empty.
 */
export function headerDigestOf(rawHeaders: readonly string[], list: readonly string[]): HeaderDigest | null {
  if (list.length === 0) return null;
  const { id, names } = countedOf(list);
  const removed = connectionNames(rawHeaders);
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
