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

  /** The connection must not be used again: its state is unknown, or its server takes no writes. */
  get connectionLost(): boolean {
    return this.failure !== 'definite' || this.sqlState === '25006';
  }

  /** One row's own fault or a conflict about one row: its neighbours may go through without it. */
  get concernsOneRow(): boolean {
    return this.failure === 'definite' && /^(22|23|40|54|55)/.test(this.sqlState ?? '');
  }

  /** The value itself is refused; repeating it can never succeed. */
  get isDataFault(): boolean {
    return this.failure === 'definite' && /^(22|23|54)/.test(this.sqlState ?? '');
  }
}

/** Errs towards `unconfirmed`: only an error that surely came before the commit is definite. */
export function classify(label: string, error: Error): StatementError {
  const { severity, code } = error as { severity?: unknown; code?: unknown };
  const sqlState = typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : null;
  const definite = sqlState !== null && severity === 'ERROR';
  return new StatementError(definite ? 'definite' : 'unconfirmed', label, error, sqlState);
}
