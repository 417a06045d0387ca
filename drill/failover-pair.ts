import { setTimeout as delay } from 'node:timers/promises';
import { query, type Teardown } from '../test/helpers/postgres.ts';
import { countRecords } from '../test/helpers/records.ts';
import { type TcpProxy, tcpProxy } from '../test/helpers/tcp-proxy.ts';
import { until } from '../test/helpers/until.ts';
import { DebianServer } from './debian-server.ts';

export interface Failover {
  /**
   * `killed`: all its processes at once, connections reset. `stopped`: an immediate stop, which tells its clients.
   * `vanished`: nothing comes back any more; what it had sent arrives after the other was promoted.
   */
  readonly how: 'killed' | 'stopped' | 'vanished';
  /** Milliseconds before the end of the primary in which nothing reaches the standby; 0: none. */
  readonly partitionMs: number;
  /**
   * What befalls the sidecars' connections in the middle of that, so that they look for what became of their statements.
   * `ended` is the worst: a commit that gives up its wait for the standby is visible, and yet on no other server.
   */
  readonly connections: 'left alone' | 'cut' | 'ended';
  /** Milliseconds without any server, before somebody promotes the standby. */
  readonly awayMs: number;
}

/** By PostgreSQL itself, as an operator would who sees statements hang. */
const endWaiting = `SELECT pg_terminate_backend(pid)
FROM pg_stat_activity
WHERE wait_event = 'SyncRep'`;

/** A primary and its streaming standby, behind one address that follows the primary. */
export class Pair {
  /** Where the sidecars find the primary. */
  readonly url: string;
  readonly #door: TcpProxy;
  readonly #link: TcpProxy;
  /** Both are read at each new connection. */
  readonly #doorTarget: { host: string; port: number };
  readonly #linkTarget: { host: string; port: number };
  #primary: DebianServer;
  #standby: DebianServer;

  private constructor(
    primary: DebianServer,
    standby: DebianServer,
    lines: { door: TcpProxy; link: TcpProxy; doorTarget: Target; linkTarget: Target },
  ) {
    this.#primary = primary;
    this.#standby = standby;
    this.#door = lines.door;
    this.#link = lines.link;
    this.#doorTarget = lines.doorTarget;
    this.#linkTarget = lines.linkTarget;
    this.url = lines.door.through(primary.url);
  }

  static async start(t: Teardown, bin: string): Promise<Pair> {
    const primary = await DebianServer.make(t, bin);
    const standby = await DebianServer.make(t, bin);
    await primary.init();
    await primary.start();
    const doorTarget = { host: '127.0.0.1', port: primary.port };
    const linkTarget = { host: '127.0.0.1', port: primary.port };
    const door = await tcpProxy(t, doorTarget);
    const link = await tcpProxy(t, linkTarget);
    return new Pair(primary, standby, { door, link, doorTarget, linkTarget });
  }

  /** A fresh copy of the primary that follows it; with `sync` each commit waits for it from here on. */
  async attachStandby(replication: 'sync' | 'async'): Promise<void> {
    await this.#standby.initFrom(this.#link.port);
    await this.#standby.start();
    await this.#untilStandby(`state = 'streaming'`);
    if (replication === 'async') return;
    await query(this.#primary.url, `ALTER SYSTEM SET synchronous_standby_names = '*'`);
    await query(this.#primary.url, 'SELECT pg_reload_conf()');
    await this.#untilStandby(`sync_state = 'sync'`);
  }

  /** From now on nothing reaches the standby, until the next failover or `mend`. */
  partition(): void {
    this.#link.pause();
  }

  mend(): void {
    this.#link.resume();
  }

  /** The primary itself, past the address that follows it. */
  get directUrl(): string {
    return this.#primary.url;
  }

  /** Those whose commit waits for the standby: it is visible from then on. */
  async endWaiting(): Promise<void> {
    await query(this.#primary.url, endWaiting);
  }

  /** A statement of a sidecar's that is committed here and waits for the standby. */
  async hasWaitingCommit(): Promise<boolean> {
    const rows = await query(
      this.#primary.url,
      `SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE 'UPDATE oncegate.record%'`,
    );
    return rows.length > 0;
  }

  async failOver({ how, partitionMs, connections, awayMs }: Failover): Promise<void> {
    if (partitionMs > 0) {
      this.partition();
      await delay(partitionMs / 2);
      if (connections === 'cut') this.#door.cutAll();
      if (connections === 'ended') await this.endWaiting();
      await delay(partitionMs / 2);
    }
    if (how === 'vanished') this.#door.pause();
    await this.#primary.kill(how === 'stopped' ? 'SIGQUIT' : 'SIGKILL');
    if (how !== 'vanished') this.#door.refuse(true);
    await delay(awayMs);
    await query(this.#standby.url, 'SELECT pg_promote()');
    [this.#primary, this.#standby] = [this.#standby, this.#primary];
    this.#doorTarget.port = this.#primary.port;
    this.#linkTarget.port = this.#primary.port;
    this.#door.refuse(false);
    this.#door.resume();
    this.#link.cutAll();
    this.#link.resume();
  }

  async #untilStandby(where: string): Promise<void> {
    await until(`a standby with ${where}`, async () => {
      const rows = await query(this.#primary.url, `SELECT FROM pg_stat_replication WHERE ${where}`);
      return rows.length > 0;
    });
  }

  async countInProgress(): Promise<number> {
    return await countRecords(this.#primary.url, `state = 'in_progress'`);
  }
}

interface Target {
  host: string;
  port: number;
}
