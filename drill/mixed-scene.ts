import { type OwnServer, ownServer, type Teardown } from '../test/helpers/postgres.ts';
import { type SidecarProcess, sidecarProcess } from '../test/helpers/sidecar.ts';
import { type TcpProxy, tcpProxy } from '../test/helpers/tcp-proxy.ts';
import { until } from '../test/helpers/until.ts';
import { maxStoredBytes } from './call.ts';

export const leaseMs = 3_000;
export const sweepMs = 500;
const config = `
lease: ${leaseMs}ms
loops: { sweep: ${sweepMs}ms }
upstream: { timeout: 3s }
drain: { max: 8s }
defaults: { inFlight: { wait: 1s }, maxStoredBody: ${maxStoredBytes}b }`;

const replicas = 3;
/** Each start looks for its store for 30 s by itself. */
const startWithinMs = 60_000;

/** A sidecar that may be killed and started again, and its own lines to PostgreSQL and to the upstream. */
export class Replica {
  readonly store: TcpProxy;
  readonly upstream: TcpProxy;
  /** What it said when it could not be started again, each time. */
  readonly failedStarts: string[] = [];
  readonly #start: () => Promise<SidecarProcess>;
  #process: SidecarProcess;

  private constructor(
    lines: { store: TcpProxy; upstream: TcpProxy },
    start: () => Promise<SidecarProcess>,
    process: SidecarProcess,
  ) {
    this.store = lines.store;
    this.upstream = lines.upstream;
    this.#start = start;
    this.#process = process;
  }

  static async start(t: Teardown, databaseUrl: string, upstreamUrl: string): Promise<Replica> {
    const store = await tcpProxy(t, addressOf(databaseUrl));
    const upstream = await tcpProxy(t, addressOf(upstreamUrl));
    const start = () =>
      sidecarProcess(t, {
        databaseUrl: store.through(databaseUrl),
        // Without the slash that a URL has at its end.
        upstream: `http://127.0.0.1:${upstream.port}`,
        config,
        log: 'dropped',
      });
    return new Replica({ store, upstream }, start, await start());
  }

  get url(): string {
    return this.#process.dataUrl;
  }

  kill(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  async exited(): Promise<void> {
    await this.#process.exited;
  }

  /** As a platform does: who ends at its start is started again. PostgreSQL may be in trouble at that very moment. */
  async startAgain(): Promise<void> {
    this.#process = await until(
      'a replica that serves',
      async () => {
        try {
          return await this.#start();
        } catch (error) {
          this.failedStarts.push((error as Error).message);
          return null;
        }
      },
      startWithinMs,
    );
  }

  async isReady(): Promise<boolean> {
    return (await fetch(`${this.#process.opsUrl}/readyz`)).status === 200;
  }
}

/** Three replicas before one upstream, on a PostgreSQL that may be stopped. */
export class MixedScene {
  readonly server: OwnServer;
  readonly replicas: readonly Replica[];
  /** Where the replicas are; `update` says that one has moved. */
  readonly urls: string[] = [];

  private constructor(server: OwnServer, all: readonly Replica[]) {
    this.server = server;
    this.replicas = all;
    this.update();
  }

  static async start(t: Teardown, upstreamUrl: string): Promise<MixedScene> {
    const server = await ownServer(t);
    const start = () => Replica.start(t, server.url, upstreamUrl);
    return new MixedScene(server, await Promise.all(Array.from({ length: replicas }, start)));
  }

  update(): void {
    this.urls.splice(0, Infinity, ...this.replicas.map(({ url }) => url));
  }

  async untilReady(): Promise<void> {
    const areReady = async () =>
      (await Promise.all(this.replicas.map((one) => one.isReady()))).every(Boolean);
    await until('all replicas have a lease', areReady);
  }
}

function addressOf(url: string): { host: string; port: number } {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}
