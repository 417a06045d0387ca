import { foldName } from './fold-name.ts';
import type { Memos } from './memos.ts';

/** The upstream's answer on its way to the client, into the store, and out of it. Headers are flat lists, as in Node. */

/** RFC 9110, 7.6.1: these speak about one connection. `Connection` may name more. */
export const hopByHop: readonly string[] = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'te',
  'trailer',
  'upgrade',
];

const notForClients: ReadonlySet<string> = new Set([
  ...hopByHop,
  // We frame the answer ourselves.
  'content-length',
]);

/** Ours to say, under any punctuation: an upstream that is itself guarded must not speak for us. */
const ourNames: ReadonlySet<string> = new Set([
  'idempotency-status',
  'idempotent-replayed',
  'idempotency-expires',
  'x-request-id',
]);

/**
 * Meant for the one client that asked first: credentials, and times that would be wrong by the next replay. A replay carries
 * its own Date, by which AWS clients set the clock that they sign with.
 */
const notForReplay: ReadonlySet<string> = new Set([
  ...notForClients,
  'set-cookie',
  'set-cookie2',
  'authorization',
  'authentication-info',
  'proxy-authenticate',
  'proxy-authentication-info',
  'age',
  'date',
]);

/** Between us and the upstream only. */
export const ourPrefix = 'oncegate-';

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Stands first in a stored list. Another number is another format. */
const version = '\x01';
/** No name and no value can hold it. */
const separator = '\0';

/** What becomes of a field of an answer, by its name. */
export interface Fate {
  readonly lower: string;
  readonly isToken: boolean;
  readonly mayPass: boolean;
  readonly mayReplay: boolean;
}

function fateOf({ fates }: Memos, name: string): Fate {
  const known = fates.get(name);
  if (known !== undefined) return known;
  const lower = Buffer.from(name.toLowerCase(), 'latin1').toString('latin1');
  const folded = foldName(lower);
  const isOurs = folded.startsWith(ourPrefix) || ourNames.has(folded);
  const fate = {
    lower,
    isToken: token.test(name),
    mayPass: !isOurs && !notForClients.has(lower),
    mayReplay: !isOurs && !notForReplay.has(lower),
  };
  // A copy: a name cut from a stored list would keep all of that. Of letters beyond latin1 it would be another name.
  if (fate.isToken) fates.keep(Buffer.from(name, 'latin1').toString('latin1'), fate);
  return fate;
}

export function clientHeaders(memos: Memos, flat: readonly string[]): string[] {
  const named = connectionNames(memos, flat);
  const kept: string[] = [];
  for (let i = 0; i < flat.length; i += 2) {
    const name = flat[i] as string;
    const fate = fateOf(memos, name);
    if (!fate.mayPass || named.has(fate.lower)) continue;
    kept.push(name, flat[i + 1] as string);
  }
  return kept;
}

const noNames: ReadonlySet<string> = new Set();

/** What `Connection` lists, lower-case. A set: both the list and the fields it is compared with may be many. */
export function connectionNames(memos: Memos, flat: readonly string[]): ReadonlySet<string> {
  let value: string | null = null;
  let others: string[] | null = null;
  for (let i = 0; i < flat.length; i += 2) {
    const name = flat[i] as string;
    if (name.length !== 10 || name.toLowerCase() !== 'connection') continue;
    if (value === null) value = flat[i + 1] as string;
    else (others ??= []).push(flat[i + 1] as string);
  }
  if (value === null) return noNames;
  if (others !== null) return listed([value, ...others].join());
  const known = memos.connectionNames.get(value);
  if (known !== undefined) return known;
  const names = listed(value);
  memos.connectionNames.keep(value, names);
  return names;
}

function listed(value: string): ReadonlySet<string> {
  return new Set(
    value
      .toLowerCase()
      .split(',')
      .map((item) => item.trim()),
  );
}

/** Takes what `clientHeaders` gave. What could not be sent again is not kept. */
export function encodeStored(memos: Memos, flat: readonly string[]): Buffer {
  let text = version;
  for (let i = 0; i < flat.length; i += 2) {
    const name = flat[i] as string;
    const value = flat[i + 1] as string;
    const { mayReplay, isToken } = fateOf(memos, name);
    if (!mayReplay || !isToken || !fieldValue.test(value)) continue;
    text += text === version ? name : separator + name;
    text += separator + value;
  }
  return Buffer.from(text, 'latin1');
}

/**
 * null: the bytes are not what `encodeStored` writes. Everything is looked at again, for the row may have been written
 * by an older version, or by hand, and a replay must never carry a Set-Cookie or a second header inside a value.
 */
export function decodeStored(memos: Memos, stored: Buffer): string[] | null {
  const text = stored.toString('latin1');
  if (!text.startsWith(version)) return null;
  if (text.length === version.length) return [];
  const parts = text.slice(version.length).split(separator);
  if (parts.length % 2 !== 0) return null;
  const flat: string[] = [];
  for (let i = 0; i < parts.length; i += 2) {
    const name = parts[i] as string;
    const value = parts[i + 1] as string;
    const { mayReplay, isToken } = fateOf(memos, name);
    if (!isToken || !fieldValue.test(value)) return null;
    if (mayReplay) flat.push(name, value);
  }
  return flat;
}

/** A stored 201 may replay as 200, where clients take 201 for "made just now". No other status changes. */
export function replayStatus(status: number, mode: 'original' | 200): number {
  return mode === 200 && status === 201 ? 200 : status;
}
