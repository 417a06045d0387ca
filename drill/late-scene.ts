import { type Answer, ask, problemOf } from '../test/helpers/client.ts';
import { query } from '../test/helpers/postgres.ts';
import { recordOf } from '../test/helpers/records.ts';
import type { SidecarProcess } from '../test/helpers/sidecar.ts';
import { until } from '../test/helpers/until.ts';
import { release, unknownAmong } from './release.ts';
import type { SteeredUpstream } from './steered-upstream.ts';

/** What a case came to, in words. */
export interface Row {
  readonly client: string;
  readonly record: string;
  readonly retry: string;
  readonly executions: string;
  readonly evidence: string;
}

/** Milliseconds; its lines are written in the background. */
const logWithinMs = 5_000;

/** Two sidecars before one upstream; the first may be put to sleep. */
export class LateScene {
  readonly upstream: SteeredUpstream;
  readonly #databaseUrl: string;
  readonly #sleeper: SidecarProcess;
  readonly #other: SidecarProcess;

  constructor(
    upstream: SteeredUpstream,
    databaseUrl: string,
    [sleeper, other]: readonly [SidecarProcess, SidecarProcess],
  ) {
    this.upstream = upstream;
    this.#databaseUrl = databaseUrl;
    this.#sleeper = sleeper;
    this.#other = other;
  }

  /** To the one that may sleep. */
  send(key: string, path = '/charges', signal?: AbortSignal): Promise<Answer> {
    return call(this.#sleeper, key, path, signal);
  }

  sendToOther(key: string): Promise<Answer> {
    return call(this.#other, key, '/charges');
  }

  /** Past its lease: when this resolves the other has called the key unknown. */
  async sleep(key: string): Promise<void> {
    this.#sleeper.kill('SIGSTOP');
    await until('swept by the other', () => unknownAmong(this.#databaseUrl, [key]));
  }

  async release(key: string): Promise<void> {
    await release(this.#databaseUrl, [key]);
  }

  wake(): void {
    this.#sleeper.kill('SIGCONT');
  }

  async state(key: string): Promise<string> {
    return (await recordOf(this.#databaseUrl, key))?.state ?? 'none';
  }

  /** What is left of an attempt of this key whose answer was refused: a line of the sleeper's log, and the answer itself. */
  async refusalOf(key: string): Promise<string> {
    const attempts = this.upstream.startsOf(key).map(({ attempt }) => attempt);
    const isOfKey = (line: string): boolean => attempts.some((attempt) => line.includes(attempt));
    const look = () => this.#sleeper.lines.find((line) => line.includes('refused') && isOfKey(line));
    const line = await until('it says so', look, logWithinMs).catch(() => null);
    const logged = line === null ? 'nothing logged' : (JSON.parse(line) as { msg: string }).msg;
    const count = `SELECT count(*)::int AS n FROM oncegate.late_answer WHERE key = '${key}'`;
    const [row] = await query(this.#databaseUrl, count);
    return `${logged}, ${String(row?.['n'])} kept`;
  }

  /** Once the client has its answer: the record, what a retry gets on either sidecar, and how often it ran. */
  async close(key: string, client: string, evidence: string, path = '/charges'): Promise<Row> {
    const record = await recordOf(this.#databaseUrl, key);
    const status = record?.status === null ? '' : ` ${record?.status}`;
    const retries = [await this.#retry(this.#sleeper, key, path), await this.#retry(this.#other, key, path)];
    return {
      client,
      record: `${record?.state ?? 'none'}${status}`,
      retry: [...new Set(retries)].join(' or '),
      executions: String(this.upstream.startsOf(key).length),
      evidence,
    };
  }

  /** Who slept has no lease at first. */
  async #retry(sidecar: SidecarProcess, key: string, path: string): Promise<string> {
    return await until('a lease', async () => {
      const answer = await call(sidecar, key, path);
      return answer.status === 503 ? null : wordOf(answer);
    });
  }
}

async function call(
  sidecar: SidecarProcess,
  key: string,
  path: string,
  signal?: AbortSignal,
): Promise<Answer> {
  const options = { key, body: `{"for":"${key}"}` };
  return await ask(`${sidecar.dataUrl}${path}`, signal === undefined ? options : { ...options, signal });
}

/** `Location` names the start: without it a replay would not be the whole answer. */
export function wordOf(answer: Answer): string {
  if (answer.status !== 201) return `${answer.status} ${problemOf(answer).code}`;
  const isWhole = answer.headers.location?.startsWith('/starts/') === true;
  return `201 ${String(answer.headers['idempotency-status'])}${isWhole ? '' : ', not whole'}`;
}
