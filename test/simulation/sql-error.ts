/** As the driver gives what a server says. */
export class SqlError extends Error {
  readonly severity = 'ERROR';
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}
