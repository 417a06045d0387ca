import { inProcess } from '../test/cli/in-process.ts';
import { query } from '../test/helpers/postgres.ts';

export interface Doubtful {
  readonly key: string;
  readonly attempt: string;
}

/** The unknown ones among `keys`, once all of them are. */
export async function unknownAmong(databaseUrl: string, keys: readonly string[]): Promise<Doubtful[] | null> {
  const list = keys.map((key) => `'${key}'`).join();
  const sql = `SELECT key, attempt FROM oncegate.record WHERE key IN (${list}) AND state = 'unknown'`;
  const rows = (await query(databaseUrl, sql)) as unknown as Doubtful[];
  return rows.length === keys.length ? rows : null;
}

/** "It did not happen: let the client retry", said by an operator. */
export async function release(databaseUrl: string, keys: readonly string[]): Promise<void> {
  for (const key of keys) {
    const which = ['--key', key, '--path', '/charges', '--database-url', databaseUrl];
    const what = ['--released', '--reason', 'a drill', '--yes'];
    const { code, out, err } = await inProcess(['keys', 'resolve', ...which, ...what]);
    if (code !== 0) throw new Error(`keys resolve ended with ${code}: ${out}${err}`);
  }
}
