import type { Test } from 'tap';
import { fingerprintOf } from '../../src/core/fingerprint.ts';
import { createMemos } from '../../src/core/memos.ts';
import type { JsonDocument } from './json-documents.ts';

const memos = createMemos();

function fingerprint(body: Buffer): string {
  const rawHeaders = ['Content-Type', 'application/json'];
  const input = { method: 'POST', path: '/a', query: null, rawHeaders, body };
  return fingerprintOf(memos, input, { body: 'canonical', ignore: [], headers: [] }).digest.toString('hex');
}

/** What the canonical form promises, written a second time and slowly: by the built-in parser, tokens and sorting. */
export function meaning(body: Buffer): string {
  const raw = `raw ${body.toString('hex')}`;
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
    JSON.parse(text);
    const tokens = text.match(/"(?:[^"\\]|\\.)*"|[[\]{}:,]|[^\s[\]{}:,"]+/g) ?? [];
    const { value, depth } = read(tokens);
    return depth > 64 ? raw : `json ${JSON.stringify(value)}`;
  } catch {
    return raw;
  }
}

/** Numbers and words by their spelling, strings decoded, members sorted; throws on a member given twice, in whatever case. */
function read(tokens: string[]): { value: unknown; depth: number } {
  const token = tokens.shift();
  if (token === '[') {
    const items: unknown[] = [];
    let depth = 0;
    while (tokens[0] !== ']') {
      const item = read(tokens);
      items.push(item.value);
      depth = Math.max(depth, item.depth);
      if (tokens[0] === ',') tokens.shift();
    }
    tokens.shift();
    return { value: { items }, depth: depth + 1 };
  }
  if (token === '{') {
    const members = new Map<string, unknown>();
    const names = new Set<string>();
    let depth = 0;
    while (tokens[0] !== '}') {
      const name = JSON.parse(tokens.shift() ?? '') as string;
      tokens.shift();
      const member = read(tokens);
      if (names.has(foldCase(name))) throw new Error('given twice');
      names.add(foldCase(name));
      members.set(name, member.value);
      depth = Math.max(depth, member.depth);
      if (tokens[0] === ',') tokens.shift();
    }
    tokens.shift();
    return { value: { members: [...members].sort(([a], [b]) => (a < b ? -1 : 1)) }, depth: depth + 1 };
  }
  if (!token?.startsWith('"')) return { value: { word: token }, depth: 0 };
  const value = JSON.parse(token) as string;
  return { value, depth: 0 };
}

function foldCase(name: string): string {
  return name.toUpperCase().toLowerCase();
}

/** Two documents share a fingerprint if and only if they mean the same. Gives back how many meanings there are. */
export function checkMeanings(t: Test, documents: readonly JsonDocument[]): number {
  const byFingerprint = new Map<string, JsonDocument>();
  const byMeaning = new Map<string, JsonDocument>();
  for (const document of documents) {
    const [print, means] = [fingerprint(document.body), meaning(document.body)];
    const twin = byFingerprint.get(print);
    if (twin !== undefined) t.equal(meaning(twin.body), means, `${document.name} and ${twin.name} share one`);
    const equal = byMeaning.get(means);
    if (equal !== undefined) t.equal(fingerprint(equal.body), print, `${document.name} means ${equal.name}`);
    byFingerprint.set(print, document);
    byMeaning.set(means, document);
  }
  return byMeaning.size;
}

/** White space around a valid document changes nothing; a byte more in a broken one does. */
export function checkSpaceAround(t: Test, documents: readonly JsonDocument[]): void {
  for (const { name, body } of documents) {
    const spaced = Buffer.concat([Buffer.from(' \n'), body, Buffer.from('\t\r\n')]);
    const isJson = meaning(body).startsWith('json');
    t.equal(fingerprint(spaced) === fingerprint(body), isJson, name);
  }
}
