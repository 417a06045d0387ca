import { readsAs } from './fold-name.ts';

export interface KeyLimits {
  readonly minLength: number;
  readonly maxLength: number;
}

export type KeyResult =
  | { readonly kind: 'none' }
  | { readonly kind: 'key'; readonly key: string }
  /** `detail` says what is wrong and what to send; never the key itself. */
  | { readonly kind: 'invalid'; readonly detail: string };

type ParsedKey = Exclude<KeyResult, { kind: 'none' }>;

const none = { kind: 'none' } as const;

const emptyDetail = 'The idempotency key is empty: send a value that is unique to this operation.';
const bareDetail =
  'The idempotency key holds something other than visible ASCII: send letters, digits and marks, or one quoted string.';
const quotedDetail =
  'The idempotency key starts with a quote but is not one quoted string: send printable ASCII between two quotes, with \\" and \\\\ as the only escapes and nothing after it.';

const space = 0x20;
const quote = 0x22;

const visibleAscii = /^[!-~]+$/;
/** RFC 8941 string: printable ASCII, with `\"` and `\\` as the only escapes. */
const quotedString = /^"((?:[ !#-[\]-~]|\\["\\])*)"$/;

/**
 * `rawHeaders` is Node's flat list, where a header sent twice is still seen twice. `sources` are lower-case names; the
 * key may come in any of them, and in several as long as they agree.
 */
export function findKey(
  rawHeaders: readonly string[],
  sources: readonly string[],
  limits: KeyLimits,
): KeyResult {
  let found: KeyResult = none;
  const seen: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    const value = rawHeaders[i + 1] as string;
    const source = sourceNamed(name, sources);
    if (source === undefined) {
      const meant = sourceMeant(name, sources);
      if (meant !== undefined) {
        return invalid(
          `A header has the name ${meant} with other punctuation, and some services read it as that. Send ${meant} only.`,
        );
      }
      const lost = sourceInConnection(name, value, sources);
      if (lost === undefined) continue;
      return invalid(`The Connection header names ${lost}, which takes it off on the way. Do not name it.`);
    }
    if (seen.includes(source)) return invalid(`The header ${source} was sent more than once. Send it once.`);
    seen.push(source);
    const parsed = parseKey(value, limits);
    if (parsed.kind === 'invalid') return parsed;
    if (found.kind === 'key' && found.key !== parsed.key) {
      return invalid(`The headers ${seen.join(' and ')} carry different keys. Send only one of them.`);
    }
    found = parsed;
  }
  return found;
}

/** The quoted and the bare form of one content are one key. */
export function parseKey(value: string, limits: KeyLimits): ParsedKey {
  const text = trimSpaces(value);
  if (text.charCodeAt(0) !== quote) {
    return visibleAscii.test(text)
      ? checkLength(text, limits)
      : invalid(text === '' ? emptyDetail : bareDetail);
  }
  const match = quotedString.exec(text);
  if (match === null) return invalid(quotedDetail);
  return checkLength((match[1] as string).replace(/\\(.)/g, '$1'), limits);
}

function checkLength(key: string, limits: KeyLimits): ParsedKey {
  const shortest = Math.max(1, limits.minLength);
  if (key.length < shortest)
    return invalid(`The idempotency key is too short: send ${shortest} or more bytes.`);
  if (key.length <= limits.maxLength) return { kind: 'key', key };
  return invalid(`The idempotency key is too long: send at most ${limits.maxLength} bytes.`);
}

/** Only SP, as RFC 8941 has it: String.trim would also take U+00A0, a byte of the value. */
function trimSpaces(value: string): string {
  let start = 0;
  let end = value.length;
  while (value.charCodeAt(start) === space) start++;
  while (value.charCodeAt(end - 1) === space) end--;
  return value.slice(start, end);
}

/** The bare form where that reads back as the same key, otherwise the quoted one. */
export function formatKey(key: string): string {
  if (visibleAscii.test(key) && key.charCodeAt(0) !== quote) return key;
  return `"${key.replace(/["\\]/g, '\\$&')}"`;
}

function invalid(detail: string): ParsedKey {
  return { kind: 'invalid', detail };
}

/** Lengths first: most headers then cost no lower-casing. */
function sourceNamed(name: string, sources: readonly string[]): string | undefined {
  for (const source of sources) {
    if (source.length === name.length && source === name.toLowerCase()) return source;
  }
  return undefined;
}

/** The source that lenient upstreams take this name for. */
function sourceMeant(name: string, sources: readonly string[]): string | undefined {
  for (const source of sources) if (readsAs(name, source)) return source;
  return undefined;
}

/** Looked at even where the key itself is absent: a hop before us may have removed it, as it was told. */
function sourceInConnection(name: string, value: string, sources: readonly string[]): string | undefined {
  if (name.length !== 10 || value === 'keep-alive' || name.toLowerCase() !== 'connection') return undefined;
  for (const token of value.split(',')) {
    const source = sourceNamed(token.trim(), sources);
    if (source !== undefined) return source;
  }
  return undefined;
}
