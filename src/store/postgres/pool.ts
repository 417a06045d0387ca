import pg from 'pg';
import { asError, OncegateError } from '../../errors.ts';
import { failpoint } from '../../failpoint.ts';
import { mayLoseBy, refusalOf } from './durability.ts';
import { keepPlans, type Look, lookAtServer } from './sql/connection.ts';
import type { Statement } from './sql/statement.ts';
import { classify, StatementError, unconfirmedWarning } from './statement-error.ts';

export interface PoolOptions {
  readonly url: string;
  readonly size: number;
  /** Seen in pg_stat_activity. */
  readonly name: string;
  /** `strict` refuses a server that may lose an acknowledged commit. */
  readonly durability: 'strict' | 'relaxed';
  readonly connectMs: number;
  /**
   * Whether the server keeps the plans of its statements: planning costs as much as running them. Not for statements whose best
   * plan depends on what the table holds just now.
   */
  readonly plans: 'kept' | 'made_anew';
}

/**
 * A plan that the server keeps was made for the table as it was. On a small one that is a scan of all of it, and the
 * plan stays while the table grows, until the next autoanalyze: 27 ms instead of 0.7 for a batch at 100,000 rows. So
 * while the table is small statements are planned each time, at 0.15 to 0.3 ms, and after a while such a connection looks
 * again. It is not replaced: on a server that is full another client would take its place. From about 2,000 rows every plan
 * goes by the index.
 */
const smallTableRows = 10_000;
const smallTableStatements = 500;

export type Rows = readonly (readonly unknown[])[];

/** A lane to the server with connections of its own. Every call is bounded, and every failure is classified. */
export class Pool {
  readonly #options: PoolOptions;
  readonly #pool: pg.Pool;
  /** Connections whose server was looked at. */
  readonly #known = new WeakSet<pg.PoolClient>();
  /**
   * Connections to a pooler: the process that greeted us is not the one that answers. In transaction mode the next statement
   * may meet another server process, which knows no statement by our names.
   */
  readonly #pooled = new WeakSet<pg.PoolClient>();
  /** Connections that found the table small, and how many statements each has run since. */
  readonly #early = new WeakMap<pg.PoolClient, number>();
  /** Ends of the waits under way, for `cut`. */
  readonly #waits = new Set<(reason: Error) => void>();

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#pool = new pg.Pool({
      connectionString: options.url,
      application_name: options.name,
      max: options.size,
      connectionTimeoutMillis: options.connectMs,
      idleTimeoutMillis: 60_000,
      keepAlive: true,
      allowExitOnIdle: true,
    });
    // A connection that breaks is dropped by the pool; without a listener of its own it would end the process,
    // also while we have it and the pool listens to nothing.
    this.#pool.on('error', () => {});
    this.#pool.on('connect', (client) => client.on('error', () => {}));
  }

  /** Rows as arrays, in the order of the statement's columns. Rejects with a StatementError, always. */
  async query(statement: Statement, values: unknown[], timeoutMs: number): Promise<Rows> {
    let client: pg.PoolClient;
    try {
      client = await this.#connect();
    } catch (error) {
      // Nothing was sent.
      throw new StatementError('unreachable', statement.label, asError(error));
    }
    return await this.#run(client, statement, values, timeoutMs);
  }

  /**
   * Looked at here and not by the pool's own `verify`: who gives up in the queue while that is under way is handed the
   * connection all the same, and it is lost to the pool for ever (pg-pool 3.14).
   */
  async #connect(): Promise<pg.PoolClient> {
    const client = await this.#pool.connect();
    const statements = this.#early.get(client) ?? 0;
    if (this.#known.has(client) && statements < smallTableStatements) return client;
    this.#early.delete(client);
    try {
      await this.#verify(client);
    } catch (error) {
      client.release(true);
      throw error;
    }
    this.#known.add(client);
    return client;
  }

  /** Waits for the statements under way. */
  async end(): Promise<void> {
    await this.#pool.end();
  }

  /** Gives up the statements under way: unconfirmed, their connections destroyed. */
  cut(): void {
    for (const end of this.#waits) end(new Error('the store was closed'));
  }

  async #run(
    client: pg.PoolClient,
    { name, text, label }: Statement,
    values: unknown[],
    timeoutMs: number,
  ): Promise<Rows> {
    let doubt: Error | null = null;
    const onNotice = ({ code, message }: { code?: string | undefined; message?: string | undefined }) => {
      if (code === unconfirmedWarning) doubt = new Error(message ?? `warning ${code}`);
    };
    client.on('notice', onNotice);
    const early = this.#early.get(client);
    const isPlannedAnew =
      this.#options.plans === 'made_anew' || early !== undefined || this.#pooled.has(client);
    let done = true;
    try {
      const query = isPlannedAnew
        ? { text, values, rowMode: 'array' as const }
        : { name, text, values, rowMode: 'array' as const };
      const work = client.query(query);
      failpoint('statement_sent', label);
      const result = await this.#bounded(work, timeoutMs);
      failpoint('statement_answered', label);
      if (doubt !== null) throw new StatementError('unconfirmed', label, doubt);
      if (early !== undefined) this.#early.set(client, early + 1);
      done = false;
      return result.rows;
    } catch (error) {
      const failure = error instanceof StatementError ? error : classify(label, asError(error));
      done = failure.connectionLost;
      throw failure;
    } finally {
      client.off('notice', onNotice);
      // A connection whose statement is not known to be over must never carry another.
      client.release(done);
    }
  }

  async #bounded<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
    let end: (reason: Error) => void = () => {};
    const ended = new Promise<never>((_, reject) => {
      end = reject;
    });
    const timer = setTimeout(() => end(new Error(`no answer within ${Math.ceil(timeoutMs)} ms`)), timeoutMs);
    this.#waits.add(end);
    try {
      return await Promise.race([work, ended]);
    } finally {
      clearTimeout(timer);
      this.#waits.delete(end);
      // After a timeout the driver still rejects its own promise when the connection is destroyed.
      work.catch(() => {});
    }
  }

  /** On each new connection, for a failover may have put another server behind the same name; and on an early one again. */
  async #verify(client: pg.PoolClient): Promise<void> {
    const { connectMs, durability } = this.#options;
    const result = await this.#bounded(client.query({ text: lookAtServer, rowMode: 'array' }), connectMs);
    const [synchronousCommit, fsync, synchronousStandbyNames, readOnly, records, backend] = result
      .rows[0] as unknown as Look;
    if (readOnly) throw new Error('the server is read-only or recovering');
    const settings = { synchronousCommit, fsync, synchronousStandbyNames };
    const lostBy = durability === 'strict' ? mayLoseBy(settings) : null;
    if (lostBy !== null) throw new OncegateError('store_not_durable', refusalOf(lostBy, settings));
    if (backend !== (client as unknown as { processID: number }).processID) this.#pooled.add(client);
    else if (this.#options.plans === 'made_anew') return;
    else if (records === null || records < smallTableRows) this.#early.set(client, 0);
    else await this.#bounded(client.query(keepPlans), connectMs);
  }
}
