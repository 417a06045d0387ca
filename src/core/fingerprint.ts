import { hash } from 'node:crypto';
import { canonicalForm } from './canonical-form.ts';
import { canonicalJson } from './canonical-json.ts';
import { canonicalMultipart } from './canonical-multipart.ts';
import { headerDigestOf } from './fingerprint-headers.ts';
import {
  type CompiledRule,
  compiledRule,
  type FingerprintRule,
  fingerprintVersion,
} from './fingerprint-rule.ts';
import { foldName } from './fold-name.ts';
import type { Ignored } from './json-pointer.ts';
import { isForm, isJson, type MediaType, parseMediaType } from './media-type.ts';
import type { Memos } from './memos.ts';
import { isMethodOverride } from './method-override.ts';
import { byFirst, part, parts } from './parts.ts';
import type { Fingerprint, HeaderDigest } from './record.ts';

/** What makes two requests "the same". Header text and target are one character a byte, as Node gives them. */
export interface FingerprintInput {
  readonly method: string;
  readonly path: string;
  /** Raw, without its `?`. null: there was no `?`, which is not the same target as an empty query. */
  readonly query: string | null;
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
}

/** Every part carries its length and every form of body its own word, so that no two requests read the same. */
export function fingerprintOf(memos: Memos, input: FingerprintInput, rule: FingerprintRule): Fingerprint {
  const compiled = compiledRule(memos, rule);
  const headers = pickHeaders(input.rawHeaders);
  const query = input.query === null ? '-' : part(input.query);
  const start = `${part(input.method)}${part(input.path)}${query}${headers.conditions}${headers.overrides}`;
  // Hashed once, however large, and without a copy.
  const bodyHash = hash('sha256', input.body, 'hex');
  const raw = sha256(`raw ${start}${parts(headers.types)}${parts(headers.encodings)}${bodyHash}`);
  const list = compiled.headers;
  const listed = list === null ? null : headerDigestOf(memos, input.rawHeaders, list);
  const contents = { start, headers, body: input.body, bodyHash };
  return new LateFingerprint(memos, compiled, { raw, headers: listed, contents });
}

interface Contents {
  readonly start: string;
  readonly headers: Picked;
  readonly body: Buffer;
  readonly bodyHash: string;
}

/**
 * Its digest is made when somebody first asks: a retry with identical bytes is known by `raw`, and reading its JSON would be a tenth
 * of what a replay costs. Until then it keeps the body.
 */
class LateFingerprint implements Fingerprint {
  readonly rule: string;
  readonly raw: Buffer;
  readonly headers: HeaderDigest | null;
  readonly #memos: Memos;
  readonly #rule: CompiledRule;
  #contents: Contents | null;
  #digest: Buffer | null = null;

  constructor(
    memos: Memos,
    rule: CompiledRule,
    { raw, headers, contents }: Pick<Fingerprint, 'raw' | 'headers'> & { readonly contents: Contents },
  ) {
    this.rule = rule.id;
    this.raw = raw;
    this.headers = headers;
    this.#memos = memos;
    this.#rule = rule;
    this.#contents = contents;
  }

  get digest(): Buffer {
    if (this.#digest === null) {
      const contents = this.#contents as Contents;
      const content = describeContent(this.#memos, this.#rule, contents);
      this.#digest = sha256(`${fingerprintVersion} ${contents.start}${content}`);
      this.#contents = null;
    }
    return this.#digest;
  }
}

/** One-shot hashing to a string is three times faster than asking for a Buffer. */
function sha256(text: string): Buffer {
  return Buffer.from(hash('sha256', text, 'binary'), 'binary');
}

interface Picked {
  /** If-* headers by name, their order kept where one came twice. */
  readonly conditions: string;
  /** Headers that name another method, likewise; empty without any. */
  readonly overrides: string;
  readonly types: readonly string[];
  readonly encodings: readonly string[];
}

const noConditions: string = parts([]);

function pickHeaders(rawHeaders: readonly string[]): Picked {
  const types: string[] = [];
  const encodings: string[] = [];
  const conditions: [name: string, value: string][] = [];
  const overrides: [name: string, value: string][] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    const value = rawHeaders[i + 1] as string;
    // Lengths and one letter first: most headers then cost no lower-casing.
    if (name.length === 12 && name.toLowerCase() === 'content-type') types.push(value);
    else if (name.length === 16 && name.toLowerCase() === 'content-encoding') encodings.push(value);
    else if ((name.charCodeAt(0) | 0x20) === 0x69 && name.slice(0, 3).toLowerCase() === 'if-') {
      conditions.push([name.toLowerCase(), value]);
    } else if (isMethodOverride(name)) overrides.push([foldName(name), value]);
  }
  const sorted = conditions.length === 0 ? noConditions : parts(conditions.sort(byFirst).flat());
  const override = overrides.length === 0 ? '' : `override ${parts(overrides.sort(byFirst).flat())}`;
  return { conditions: sorted, overrides: override, types, encodings };
}

/** Media type, content-encoding and body: in canonical form where the rule allows it and the body has one, else its raw bytes. */
function describeContent(memos: Memos, rule: CompiledRule, { headers, body, bodyHash }: Contents): string {
  const encodings = codingsOf(headers.encodings);
  const type = headers.types.length === 1 ? parseMediaType(memos, headers.types[0] as string) : null;
  if (type === null) return `raw ${parts(encodings)}${parts(headers.types)}${bodyHash}`;
  const start = `${parts(encodings)}${part(type.essence)}${parts(type.parameters)}`;
  if (encodings.length === 0 && rule.body === 'canonical') {
    const canonical = canonicalBody(type, body, rule.ignored);
    if (canonical !== null) return `${canonical.form} ${start}${canonical.text}`;
  }
  return `other ${start}${parts(type.boundaries)}${bodyHash}`;
}

/** Content codings in the order they were applied; `identity` is none. */
function codingsOf(encodings: readonly string[]): readonly string[] {
  if (encodings.length === 0) return encodings;
  const codings = encodings.join(',').toLowerCase().split(',');
  return codings.map((coding) => coding.trim()).filter((coding) => coding !== '' && coding !== 'identity');
}

interface Canonical {
  readonly form: 'json' | 'form' | 'multipart';
  readonly text: string;
}

function canonicalBody(type: MediaType, body: Buffer, ignored: Ignored | null): Canonical | null {
  const { essence, boundaries } = type;
  if (boundaries.length === 1)
    return canonical('multipart', canonicalMultipart(body, boundaries[0] as string));
  if (type.otherCharset) return null;
  if (isJson(essence)) return canonical('json', canonicalJson(body, ignored));
  if (isForm(essence)) return canonical('form', canonicalForm(body, ignored));
  return null;
}

function canonical(form: Canonical['form'], text: string | null): Canonical | null {
  return text === null ? null : { form, text };
}
