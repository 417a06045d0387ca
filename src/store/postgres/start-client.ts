import pg from 'pg';
import { asError, OncegateError } from '../../errors.ts';
import { connectFault, placeOf } from './connect-fault.ts';
import { unconfirmedWarning } from './statement-error.ts';

/** It answered a statement, and said no: asking again would not help. By SQLSTATE. */
const refusals: readonly (readonly [code: RegExp, advice: string])[] = [
  [/^55P03$/, 'Something holds a lock on its tables for long (a dump, a report); try again when it is done.'],
  [/^42501$/, 'Grant that right, or let the owner run `oncegate migrate up`.'],
  [/^42/, 'Its schema is not as this Oncegate left it.'],
];

function notConfirmed(warning: string): OncegateError {
  return new OncegateError(
    'store_unreachable',
    `the store did not confirm the change: ${warning}. See that its synchronous standby is attached, then try again.`,
  );
}

/** One connection for what is asked before anything is served. Rejects with an OncegateError that says what to do. */
export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: 5_000,
    application_name: 'oncegate start',
  });
  client.on('error', () => {});
  let doubt: string | null = null;
  let isConnected = false;
  client.on('notice', ({ code, message }) => {
    if (code === unconfirmedWarning) doubt = message ?? code;
  });
  try {
    await client.connect();
    isConnected = true;
    const result = await work(client);
    if (doubt !== null) throw notConfirmed(doubt);
    return result;
  } catch (error) {
    if (error instanceof OncegateError) throw error;
    const { code, message } = asError(error) as Error & { code?: unknown };
    const refusal = typeof code === 'string' ? refusals.find(([pattern]) => pattern.test(code)) : undefined;
    if (refusal !== undefined)
      throw new OncegateError('store_refused', `the store refuses: ${message}. ${refusal[1]}`, {
        cause: error,
      });
    const { kind, verb, reason, advice } = connectFault(error, placeOf(client));
    throw new OncegateError(
      kind === 'away' ? 'store_unreachable' : 'store_refused',
      `the store ${verb}: ${reason}; ${advice}`,
      { cause: error },
    );
  } finally {
    // The driver waits for ever for the end of a connection that could not even begin.
    if (isConnected) await client.end().catch(() => {});
    else client.connection.stream.destroy();
  }
}
