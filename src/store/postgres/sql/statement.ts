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
 * Makes the server send its warnings, for this statement and its commit. Every statement that writes has it: when a wait for the
 * synchronous standby is cancelled, the server reports success, and only warning 01000 says that no standby may have the
 * commit. A role, a database or the server may hide warnings (`client_min_messages`), at any time and behind a pooler
 * on any of its connections; so nothing that was set or checked once on a connection would do.
 */
export const showWarnings = `set_config('client_min_messages', 'warning', true)`;

/** The same for a statement that has nothing else to join. */
export const warningsShown = `(SELECT ${showWarnings} AS warnings OFFSET 0)`;

/**
 * Bounds the wait for a row that somebody else has locked, for this statement only, and shows warnings. A session setting
 * would not survive a pooler; a server-wide one is not ours. Joined so that it is evaluated before the first row is touched.
 */
export const lockTimeout = (ms: number): string =>
  `(SELECT set_config('lock_timeout', '${ms}', true) AS lock_timeout, ${showWarnings} AS warnings OFFSET 0)`;
