import { hash } from 'node:crypto';
import { type HeaderList, headerListOf } from './fingerprint-headers.ts';
import { type Ignored, ignoredBy } from './json-pointer.ts';
import type { Memos } from './memos.ts';
import { parts } from './parts.ts';

export interface FingerprintRule {
  readonly body: 'canonical' | 'raw';
  /** JSON pointers of what does not count: members of JSON, fields of a form. */
  readonly ignore: readonly string[];
  /** Names of headers that count beside those that always do. */
  readonly headers: readonly string[];
}

/** A rule as fingerprintOf needs it. */
export interface CompiledRule {
  readonly id: string;
  readonly body: FingerprintRule['body'];
  /** null: all of the body counts. */
  readonly ignored: Ignored | null;
  /** null: no header counts beside those that always do. */
  readonly headers: HeaderList | null;
}

/** Part of every rule id: raise it when the same request would get another `digest` than before. */
export const fingerprintVersion = 'v3';

const plain = {
  canonical: { id: `${fingerprintVersion}:canonical`, body: 'canonical', ignored: null, headers: null },
  raw: { id: `${fingerprintVersion}:raw`, body: 'raw', ignored: null, headers: null },
} as const satisfies Record<FingerprintRule['body'], CompiledRule>;

/** Compiles each rule once. Most rules have no list, and these cost no search. */
export function compiledRule(memos: Memos, rule: FingerprintRule): CompiledRule {
  if (rule.ignore.length === 0 && rule.headers.length === 0) return plain[rule.body];
  let compiled = memos.rules.get(rule);
  if (compiled === undefined) {
    compiled = compile(rule);
    memos.rules.set(rule, compiled);
  }
  return compiled;
}

function compile(rule: FingerprintRule): CompiledRule {
  const { body, ignore, headers } = rule;
  return {
    id: ruleId(rule),
    body,
    ignored: ignoredBy(ignore),
    headers: headerListOf(headers),
  };
}

/** Names what `digest` means, without the headers of the rule. Digests of other ids are not compared, only `raw` is. */
export function ruleId({ body, ignore }: Pick<FingerprintRule, 'body' | 'ignore'>): string {
  // Raw bodies have no members to ignore.
  if (body === 'raw' || ignore.length === 0) return plain[body].id;
  const list = parts([...new Set(ignore)].sort());
  return `${plain.canonical.id}:${hash('sha256', list, 'hex').slice(0, 32)}`;
}
