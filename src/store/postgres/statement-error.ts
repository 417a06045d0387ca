/**
 * How a statement failed, which decides what may be done next:
 * `unreachable`  it was never sent;
 * `definite`     the server refused it on a live connection: nothing was committed;
 * `unconfirmed`  a cut, a timeout, a FATAL: it may or may not be committed, and must be read back.
 */
export type Failure = 'unreachable' | 'definite' | 'unconfirmed';

export class StatementError extends Error {
  readonly failure: Failure;
  /** SQLSTATE, where the server gave one. */
  readonly sqlState: string | null;

  constructor(failure: Failure, label: string, cause: Error, sqlState: string | null = null) {
    // The driver's `detail` holds key values: it must not reach a message.
    super(`${label}: ${cause.message}`, { cause });
    this.name = 'StatementError';
    this.failure = failure;
    this.sqlState = sqlState;
  }

  /**
   * The connection must not be used again: its state is unknown, or the fault may lie in it: a server that takes no
   * writes any more (25006), a prepared statement that is gone (26000) or no longer fits the table (0A000).
   */
  get connectionLost(): boolean {
    return !this.concernsOneRow;
  }

  /** One row's own fault or a conflict about one row: its neighbours may go through without it. */
  get concernsOneRow(): boolean {
    return this.failure === 'definite' && /^(22|23|40|54|55)/.test(this.sqlState ?? '');
  }

  /**
   * The server answered, and with nothing that speaks of its own trouble: a page that cannot be read, a trigger that raises. That
   * is said of a batch, but if it stays it may be one row's.
   */
  get mayConcernOneRow(): boolean {
    return this.sqlState !== null && !/^(08|53|57P)/.test(this.sqlState);
  }

  /** The value itself is refused; repeating it can never succeed. */
  get isDataFault(): boolean {
    return this.failure === 'definite' && /^(22|23|54)/.test(this.sqlState ?? '');
  }
}

/**
 * Errs towards `unconfirmed`: only an error that surely came before the commit is definite. By SQLSTATE, because the
 * driver gives the severity in the server's language; and because poolers send class 08, 57P or 58 with ERROR when
 * they lost a server. 57014 is a cancelled statement, 40003 says itself that it does not know.
 */
const beforeCommit = /^(0A|22|23|25|26|28|34|3D|3F|40|42|44|53|54|55|57014)/;

export function classify(label: string, error: Error): StatementError {
  const { severity, code } = error as { severity?: unknown; code?: unknown };
  const sqlState = typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : null;
  const fatal = severity === 'FATAL' || severity === 'PANIC';
  const definite = sqlState !== null && beforeCommit.test(sqlState) && sqlState !== '40003' && !fatal;
  return new StatementError(definite ? 'definite' : 'unconfirmed', label, error, sqlState);
}
