import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import pg from 'pg';
import { startTestServer } from '../test/helpers/postgres.ts';
import { root, startChild } from './child.ts';
import type { Contender, Site } from './contenders.ts';
import { type Bench, type Entrant, send } from './measure.ts';
import type { Options } from './options.ts';

/** Requests before the first that counts: the code must be compiled by then, and connections open. */
const warmUpRequests = 3_000;

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
    const start = (name: string) => {
      const child = startChild(['--import=tsx', join(root, `bench/${name}.ts`)], join(dir, `${name}.log`));
      this.#undo.push(() => child.stop());
      return child;
    };
    const upstream = start('upstream');
    const { port } = await upstream.told<{ port: number }>();
    const bench = { upstream, load: start('load'), postmaster: server.pid, client };
    const profileDir = options.profileDir === null ? null : resolve(options.profileDir);
    return { bench, site: { upstreamPort: port, dir, database: databases(server.url, client), profileDir } };
  }

  async enter(bench: Bench, site: Site, contender: Contender, { connections }: Options): Promise<Entrant> {
    const started = await contender.start(site);
    if (started.child !== null) this.#undo.push(() => started.child?.stop());
    const { keys } = contender;
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
  const made = new Map<string, Promise<unknown>>();
  return async (name) => {
    const making = made.get(name) ?? client.query(`CREATE DATABASE bench_${name}`);
    made.set(name, making);
    await making;
    const url = new URL(serverUrl);
    url.pathname = `/bench_${name}`;
    return url.href;
  };
}
