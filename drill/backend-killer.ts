import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Teardown } from '../test/helpers/postgres.ts';
import type { Random } from './random.ts';

/** Milliseconds between two server processes that are ended. */
export const everyMs = 50;

/** Ends a server process of the pooler's, any one, again and again. */
export class BackendKiller {
  kills = 0;
  readonly #client: pg.Client;
  readonly #random: Random;
  #isStopping = false;
  #work: Promise<void> = Promise.resolve();

  private constructor(client: pg.Client, random: Random) {
    this.#client = client;
    this.#random = random;
  }

  static async start(t: Teardown, url: string, random: Random): Promise<BackendKiller> {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => {});
    await client.connect();
    t.teardown(() => client.end());
    const killer = new BackendKiller(client, random);
    killer.#work = killer.#run();
    return killer;
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#work;
    await this.#client.end();
  }

  async #run(): Promise<void> {
    while (!this.#isStopping) {
      const { rows } = await this.#client.query<{ pid: number }>(
        `SELECT pid
FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`,
      );
      if (rows.length > 0) {
        await this.#client.query('SELECT pg_terminate_backend($1)', [this.#random.pick(rows).pid]);
        this.kills += 1;
      }
      await delay(everyMs);
    }
  }
}
