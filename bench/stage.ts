import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import pg from 'pg';
import { startTestServer } from '../test/helpers/postgres.ts';
import { compiled, type StartChild, startChild } from './child.ts';
import type { Bench } from './measure.ts';
import type { Site } from './start.ts';

interface Props {
  readonly keys: number;
  readonly profileDir: string | null;
}

/** Everything around the contenders, and the contenders. `strike` stops all of it, however far it came. */
export class Stage {
  readonly #undo: (() => unknown)[] = [];
  #striking: Promise<void> | null = null;

  async setUp(options: Props): Promise<{ bench: Bench; site: Site; serverUrl: string }> {
    const dir = mkdtempSync(join(tmpdir(), 'oncegate-bench-'));
    chmodSync(dir, 0o755);
    this.#undo.push(() => rmSync(dir, { recursive: true, force: true }));
    const server = await startTestServer();
    this.#undo.push(() => server.stop());
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    this.#undo.push(() => client.end());
    const start: StartChild = (name, args, how) => {
      if (this.#striking !== null) throw new Error('the stage is being cleared');
      const child = startChild(args, join(dir, `${name}.log`), how);
      this.#undo.push(() => child.stop());
      return child;
    };
    const ours = (name: string) => start(name, [compiled(name)]);
    const upstream = ours('upstream');
    const { port } = await upstream.told<{ port: number }>();
    return {
      bench: { upstream, load: ours('load'), postmaster: server.pid, client },
      serverUrl: server.url,
      site: {
        upstreamPort: port,
        dir,
        start,
        database: databases(server.url, client),
        keys: options.keys,
        profileDir: options.profileDir === null ? null : resolve(options.profileDir),
      },
    };
  }

  /** May be called twice. */
  strike(): Promise<void> {
    this.#striking ??= this.#strike();
    return this.#striking;
  }

  async #strike(): Promise<void> {
    for (const step of this.#undo.reverse()) await step();
  }
}

function databases(serverUrl: string, client: pg.Client): Site['database'] {
  const made = new Map<string, Promise<string>>();
  const make = async (name: string, fill: (url: string) => Promise<void>): Promise<string> => {
    await client.query(`CREATE DATABASE ${name}`);
    const url = new URL(serverUrl);
    url.pathname = `/${name}`;
    await fill(url.href);
    return url.href;
  };
  return async (name, fill) => {
    const url = made.get(name) ?? make(`bench_${name}`, fill);
    made.set(name, url);
    return await url;
  };
}
