import { hashOf, type RecordId } from '../core/record.ts';

/** Letters of an ID as people get to see it. These are 64 bits: no two records of a store ever share them. */
export const idLetters = 16;

/** Letters of a record's whole hash. */
export const hashLetters = 64;

/** Names a record to people without showing its key. */
export function shortId(id: RecordId): string {
  return hashOf(id).slice(0, idLetters);
}
