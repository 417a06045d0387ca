import { TLSSocket } from 'node:tls';
import pg from 'pg';
import { asError, OncegateError } from '../../errors.ts';
import { type ConnectFault, connectFault, placeOf, type StorePlace } from './connect-fault.ts';
import { readOnly } from './sql/doctor.ts';
import { endsConnection } from './statement-error.ts';

/** Milliseconds. A server in reach greets in a few; one that is not must not keep a person waiting. */
const connectMs = 3_000;
/** Longer than the server's own limit on a look, so that its answer is the one that is told. */
const answerMs = 4_000;
/** For a farewell over a line that may be dead. */
const closeMs = 1_000;

export type OpenedSession =
  | { readonly kind: 'opened'; readonly session: InspectSession }
  | { readonly kind: 'failed'; readonly place: StorePlace; readonly fault: ConnectFault };

/** One connection for all looks. No retry: whoever asks wants to know how it is now. */
export class InspectSession {
  readonly place: StorePlace;
  /** TLS protocol, or null for none. */
  readonly tls: string | null;
  /** The process that greeted us. A pooler makes a number up. */
  readonly greetedBy: number;
  readonly #client: pg.Client;

  constructor(client: pg.Client) {
    this.#client = client;
    this.place = placeOf(client);
    const { stream } = client.connection;
    this.tls = stream instanceof TLSSocket ? stream.getProtocol() : null;
    // Not in the driver's types.
    this.greetedBy = (client as unknown as { processID: number }).processID;
  }

  /** The rows of one look; its columns are named like the fields of `T`. Rejects with `store_unreachable` where no answer came. */
  async look<T>(sql: string): Promise<readonly T[]> {
    try {
      const results = (await this.#client.query(readOnly(sql))) as unknown as { rows: T[] }[];
      return results.at(-1)?.rows ?? [];
    } catch (error) {
      if (error instanceof pg.DatabaseError && !endsConnection(error.code ?? '')) throw error;
      throw new OncegateError('store_unreachable', asError(error).message, { cause: error });
    }
  }

  async run(sql: string, values: unknown[]): Promise<void> {
    await this.#client.query(sql, values);
  }

  async close(): Promise<void> {
    const timer = setTimeout(() => this.#client.connection.stream.destroy(), closeMs);
    await this.#client.end().catch(() => {});
    clearTimeout(timer);
  }
}

export async function openSession(url: string): Promise<OpenedSession> {
  let client: pg.Client | null = null;
  try {
    client = new pg.Client({
      connectionString: url,
      connectionTimeoutMillis: connectMs,
      query_timeout: answerMs,
      application_name: 'oncegate doctor',
    });
    client.on('error', () => {});
    await client.connect();
    return { kind: 'opened', session: new InspectSession(client) };
  } catch (thrown) {
    client?.connection.stream.destroy();
    const place = client === null ? { host: '', port: 0, database: '' } : placeOf(client);
    return { kind: 'failed', place, fault: connectFault(thrown, place) };
  }
}

/** For calls that make a client of their own: the driver reads its settings from the URL, too. */
export function withAnswerLimit(url: string): string {
  const bounded = new URL(url);
  bounded.searchParams.set('query_timeout', String(answerMs));
  return bounded.href;
}
