import pg from 'pg';
import { asError } from '../../errors.ts';
import type { Statement } from './sql/statement.ts';
import { classify, StatementError } from './statement-error.ts';

export interface PoolOptions {
  readonly url: string;
  readonly size: number;
  /** Seen in pg_stat_activity. */
  readonly name: string;
  /** `strict` refuses a server that may lose an acknowledged commit. */
  readonly durability: 'strict' | 'relaxed';
}

/** Milliseconds to get a connection. Errs short: a caller behind it holds a client's request. */
const connectTimeoutMs = 3_000;

type Rows = readonly (readonly unknown[])[];

const guardSettings = `SELECT current_setting('synchronous_commit'), current_setting('fsync'),
  pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on'`;

/** A lane to the server with connections of its own. Every call is bounded, and every failure is classified. */
export class Pool {
  readonly #pool: pg.Pool;

  constructor(options: PoolOptions) {
    this.#pool = new pg.Pool({
      connectionString: options.url,
      application_name: options.name,
      max: options.size,
      connectionTimeoutMillis: connectTimeoutMs,
      idleTimeoutMillis: 60_000,
      keepAlive: true,
      allowExitOnIdle: true,
      verify: (client, done) => {
        verify(client, options.durability).then(() => done(), done);
      },
    });
    // A connection that breaks is dropped by the pool; without a listener of its own it would end the process,
    // also while `verify` has it and the pool listens to nothing.
    this.#pool.on('error', () => {});
    this.#pool.on('connect', (client) => client.on('error', () => {}));
  }

  /** Rows as arrays, in the order of the statement's columns. Rejects with a StatementError, always. */
  async query(statement: Statement, values: unknown[], timeoutMs: number): Promise<Rows> {
    let client: pg.PoolClient;
    try {
      client = await this.#pool.connect();
    } catch (error) {
      // Nothing was sent.
      throw new StatementError('unreachable', statement.label, asError(error));
    }
    return await run(client, statement, values, timeoutMs);
  }

  async end(): Promise<void> {
    await this.#pool.end();
  }
}

async function run(
  client: pg.PoolClient,
  statement: Statement,
  values: unknown[],
  timeoutMs: number,
): Promise<Rows> {
  let doubt: Error | null = null;
  // PostgreSQL says this when a wait for the synchronous standby was cancelled: committed here, perhaps nowhere else.
  const onNotice = (notice: { code?: string | undefined; message?: string | undefined }) => {
    if (notice.code === '01000') doubt = new Error(notice.message ?? 'warning 01000');
  };
  client.on('notice', onNotice);
  let broken: Error | boolean = true;
  try {
    const result = await bounded(
      client.query({ name: statement.name, text: statement.text, values, rowMode: 'array' }),
      timeoutMs,
    );
    if (doubt !== null) throw new StatementError('unconfirmed', statement.label, doubt);
    broken = false;
    return result.rows;
  } catch (error) {
    const failure = error instanceof StatementError ? error : classify(statement.label, asError(error));
    broken = failure.connectionLost;
    throw failure;
  } finally {
    client.off('notice', onNotice);
    // A connection whose statement is not known to be over must never carry another.
    client.release(broken);
  }
}

async function bounded<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    // After a timeout the driver still rejects its own promise when the connection is destroyed.
    work.catch(() => {});
  }
}

/** On each new connection: a failover may have put another server behind the same name. */
async function verify(client: pg.PoolClient, durability: PoolOptions['durability']): Promise<void> {
  const result = await bounded(client.query({ text: guardSettings, rowMode: 'array' }), connectTimeoutMs);
  const [synchronousCommit, fsync, readOnly] = result.rows[0] as unknown as [string, string, boolean];
  if (readOnly) throw new Error('the server is read-only or recovering');
  if (durability === 'relaxed') return;
  if (synchronousCommit === 'off' || fsync === 'off') {
    throw new Error(
      `the server may lose acknowledged commits (synchronous_commit ${synchronousCommit}, fsync ${fsync}); ` +
        'turn them on, or accept the loss with store.durability: relaxed',
    );
  }
}
