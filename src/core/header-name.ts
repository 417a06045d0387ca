import { foldName } from './fold-name.ts';
import type { Memos } from './memos.ts';
import { hopByHop, ourPrefix } from './response.ts';

/** What a header's name says about it on its way to the upstream, whatever its punctuation. */
export interface HeaderName {
  readonly lower: string;
  /** Never taken from the client: about its own connection, or set by us. */
  readonly isOurs: boolean;
  /** The same, of guarded requests: these are framed again, and read in one way only. */
  readonly isOursWhenGuarded: boolean;
}

const notForUpstream: ReadonlySet<string> = new Set([
  ...hopByHop,
  // Belongs to `Upgrade: h2c`, which we do not speak.
  'http2-settings',
  // Node has answered 100 already; undici would refuse the request.
  'expect',
  'host',
  'x-request-id',
  // Says what X-Forwarded-* say, in the standard's words; we set only the latter.
  'forwarded',
]);

const notForUpstreamWhenGuarded: ReadonlySet<string> = new Set([
  // Framed again by undici.
  'content-length',
  // A compressed answer would differ between clients, and so between first answer and replay.
  'accept-encoding',
]);

export function headerName({ headerNames }: Memos, name: string): HeaderName {
  const known = headerNames.get(name);
  if (known !== undefined) return known;
  const lower = name.toLowerCase();
  const folded = foldName(name);
  const isOurs =
    notForUpstream.has(folded) || folded.startsWith('x-forwarded-') || folded.startsWith(ourPrefix);
  const isVariant = folded !== lower;
  const made = {
    lower,
    isOurs: isOurs || (isVariant && folded === 'content-length'),
    isOursWhenGuarded:
      isOurs || notForUpstreamWhenGuarded.has(folded) || (isVariant && inFingerprint.test(folded)),
  };
  headerNames.keep(name, made);
  return made;
}

/** The fingerprint has the real ones only. */
const inFingerprint = /^(?:content|if)-/;
