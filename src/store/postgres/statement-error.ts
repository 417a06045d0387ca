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

  /**
   * The server is well and says no to this: also where a trigger raises (P0) or a page is damaged (XX001, XX002), of which nobody knows
   * what became of the row.
   */
  get isAnswer(): boolean {
    return this.concernsOneRow || /^(P0|XX00[12])/.test(this.sqlState ?? '');
  }

  /** The value itself is refused; repeating it can never succeed. */
  get isDataFault(): boolean {
    return this.failure === 'definite' && /^(22|23|54)/.test(this.sqlState ?? '');
  }
}

/**
 * SQLSTATE of the warning with which PostgreSQL reports a cancelled wait for the synchronous standby: committed on this server, perhaps
 * nowhere else. The text and the severity are in the server's language (`lc_messages`); the code is not.
 */
export const unconfirmedWarning = '01000';

/**
 * Errs towards `unconfirmed`: only an error that surely came before the commit is definite. By SQLSTATE alone, because the
 * driver gives the severity in the server's language. Not in the list, because they may come in the middle of a commit or
 * with a connection that ends: 08, 57P and 58, which poolers also send when they lost a server; 53, as when the disk is
 * full and the server panics; 25P03 and later, which are limits of a session; 40003, which says itself that it does not know.
 * 57014 is a cancelled statement.
 */
const beforeCommit = /^(0A|22|23|25(?!P0[3-9])|26|28|34|3D|3F|40(?!003)|42|44|54|55|57014)/;

/** A privilege, or a file of the server: in the second case the server panics, perhaps in the middle of a commit. */
const noPermission = '42501';
/** PostgreSQL's own name for the place where it refuses for want of a privilege. In no language. */
const privilegeCheck = 'aclcheck_error';

export function classify(label: string, error: Error): StatementError {
  const { code, routine } = error as { code?: unknown; routine?: unknown };
  const sqlState = typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : null;
  const definite =
    sqlState !== null &&
    beforeCommit.test(sqlState) &&
    (sqlState !== noPermission || routine === privilegeCheck);
  return new StatementError(definite ? 'definite' : 'unconfirmed', label, error, sqlState);
}

/** Whether the server ended the connection with this error: nobody answers on it any more. By SQLSTATE, as above. */
export function endsConnection(sqlState: string): boolean {
  return /^(08|57P|25P0[3-9])/.test(sqlState);
}
