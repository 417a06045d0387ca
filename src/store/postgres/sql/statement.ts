import { createHash } from 'node:crypto';
import { type Actor, type State, sourcesOf } from '../../../core/record.ts';

/** A statement and the name it is prepared under: a hash of its text, so two versions can share a server. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  /** What it does, in one word: for metrics and messages. */
  readonly label: string;
}

export function statement(label: string, text: string): Statement {
  const name = `oncegate_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`;
  return { name, text, label };
}

/** The states from which `actor` may move a record to `to`, as an SQL list: the guard is the table of legal moves. */
export function fromStates(to: State, actor: Actor): string {
  return sourcesOf(to, actor)
    .map((state) => `'${state}'`)
    .join(', ');
}

/**
 * Bounds the wait for a row that somebody else has locked, for this statement only. A session setting would not
 * survive a pooler; a server-wide one is not ours. Joined so that it is evaluated before the first row is touched.
 */
export const lockTimeout = (ms: number): string =>
  `(SELECT set_config('lock_timeout', '${ms}', true) AS lock_timeout OFFSET 0)`;
