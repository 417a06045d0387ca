import type { Memos } from './memos.ts';
import type { StoredAnswer } from './record.ts';
import { clientHeaders, encodeStored } from './response.ts';

/** An answer in a person's words: what retries shall get from now on. */
export interface Given {
  readonly status: number;
  /** Each as `Name: value`. */
  readonly headers: readonly string[];
  readonly body: Buffer;
}

export type GivenAnswer =
  | { readonly kind: 'answer'; readonly answer: StoredAnswer }
  /** `text`: what is wrong, and what to write instead. */
  | { readonly kind: 'fault'; readonly text: string };

/** RFC 9110, 15.3.5, 15.3.6 and 15.4.5: a client would take a body for the beginning of the next answer. */
const bodiless: ReadonlySet<number> = new Set([204, 205, 304]);

/** By the rules for an upstream's answer; but what would be left out of that silently is a fault here, and told. */
export function givenAnswer(memos: Memos, { status, headers, body }: Given): GivenAnswer {
  if (!Number.isInteger(status) || status < 200 || status > 599)
    return fault('the status must be a number from 200 to 599, as 201');
  if (bodiless.has(status) && body.length > 0) return fault(`an answer with status ${status} has no body`);
  const flat: string[] = [];
  for (const header of headers) {
    const colon = header.indexOf(':');
    if (colon < 1) return fault(`a header is written 'Name: value', not '${header}'`);
    const pair = [header.slice(0, colon), header.slice(colon + 1).trim()] as const;
    if (!isKept(memos, pair)) return fault(notKept(memos, pair));
    flat.push(...pair);
  }
  const answer = { status, headers: encodeStored(memos, flat), body, closeFramed: false };
  return { kind: 'answer', answer };
}

function isKept(memos: Memos, pair: readonly string[]): boolean {
  return encodeStored(memos, clientHeaders(memos, pair)).length > encodeStored(memos, []).length;
}

/** An empty value can always be stored: if not even that is kept, it is the name. */
function notKept(memos: Memos, [name]: readonly [name: string, value: string]): string {
  if (isKept(memos, [name, '']))
    return `the value of ${name} has letters that no header may have; use plain ASCII`;
  return `${name} is never stored with an answer: it is no header name, or it speaks about one connection, one client or one moment; leave it out`;
}

function fault(text: string): GivenAnswer {
  return { kind: 'fault', text };
}
