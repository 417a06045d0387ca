import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import pg from 'pg';
import { startTestServer } from '../test/helpers/postgres.ts';
import { compiled, type StartChild, startChild } from './child.ts';
import type { Contender, Site } from './contenders.ts';
import { type Bench, type Entrant, send } from './measure.ts';
import type { Options } from './options.ts';

/** Everything around the contenders, and the contenders. `strike` stops all of it, however far it came. */
export class Stage {
  readonly #undo: (() => unknown)[] = [];
  #striking: Promise<void> | null = null;

  async setUp(options: Options): Promise<{ bench: Bench; site: Site }> {
    const dir = mkdtempSync(join(tmpdir(), 'oncegate-bench-'));
    chmodSync(dir, 0o755);
    this.#undo.push(() => rmSync(dir, { recursive: true, force: true }));
    const server = await startTestServer();
    this.#undo.push(() => server.stop());
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    this.#undo.push(() => client.end());
    const start: StartChild = (name, args, env) => {
      if (this.#striking !== null) throw new Error('the stage is being cleared');
      const child = startChild(args, join(dir, `${name}.log`), env);
      this.#undo.push(() => child.stop());
      return child;
    };
    const ours = (name: string) => start(name, [compiled(name)]);
    const upstream = ours('upstream');
    const { port } = await upstream.told<{ port: number }>();
    return {
      bench: { upstream, load: ours('load'), postmaster: server.pid, client },
      site: {
        upstreamPort: port,
        start,
        database: databases(server.url, client),
        keys: options.keys,
        profileDir: options.profileDir === null ? null : resolve(options.profileDir),
      },
    };
  }

  async enter(bench: Bench, site: Site, contender: Contender, options: Options): Promise<Entrant> {
    const started = await contender.start(site);
    const { keys } = contender;
    const { connections, warmUpRequests } = options;
    const order = { port: started.port, connections, requests: warmUpRequests };
    // The first of each key runs; only then are there replays.
    if (keys !== null) await send(bench, { ...order, requests: keys.length, keys, expect: 'HTTP/1.1 201' });
    await send(bench, { ...order, keys, expect: contender.expect });
    return { ...contender, ...started };
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
