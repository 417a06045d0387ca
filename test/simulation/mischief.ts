import { createMemos } from '../../src/core/memos.ts';
import { encodeStored } from '../../src/core/response.ts';
import { Sidecar } from './sidecar.ts';
import { type Row, unanswered } from './sim-row.ts';
import type { World } from './world.ts';

const purgeBlockMs = 60_000;

/** What happens to processes, machines and the server; and the operator. */
export class Mischief {
  readonly #world: World;
  readonly #sidecars: Sidecar[] = [];
  #made = 0;

  constructor(world: World) {
    this.#world = world;
  }

  get alive(): readonly Sidecar[] {
    return this.#sidecars.filter((sidecar) => !sidecar.isDead);
  }

  /** Those that take requests. */
  get open(): readonly Sidecar[] {
    return this.alive.filter((sidecar) => !sidecar.isDraining);
  }

  /** Those that ended by themselves must have left nothing behind either, but for what they gave up at the very end. */
  get answerable(): readonly Sidecar[] {
    return this.#sidecars.filter(
      ({ isDead, isDrained, hasGivenUp }) => !isDead || (isDrained && !hasGivenUp),
    );
  }

  startSidecar(): void {
    this.#made += 1;
    const sidecar = new Sidecar(this.#world, `s${this.#made}`);
    this.#sidecars.push(sidecar);
    this.#world.clock.after(0, sidecar, `${sidecar.name} starts`, () => sidecar.start());
  }

  plan(untilMs: number): void {
    const { choices, clock, settings } = this.#world;
    const events = [
      [3, () => {}],
      [3, () => this.#pause()],
      [2, () => this.#suspend()],
      [2, () => this.#stopInQueue()],
      [2, () => this.#kill()],
      [2, () => this.#drain()],
      [2, () => this.#setWallClock()],
      [2, () => this.#cutOff()],
      [4, () => (settings.hasStandby ? this.#failOver() : this.#failOverAsync())],
      [5, () => this.#operator()],
      [1, () => this.#purge()],
    ] as const;
    for (let left = choices.between(0, 8); left > 0; left -= 1)
      clock.after(choices.between(500, untilMs), null, 'mischief', choices.weighted(events));
  }

  /** All that was held up goes on. */
  end(): void {
    for (const sidecar of this.#sidecars) {
      sidecar.pausedUntilMs = Math.min(sidecar.pausedUntilMs, this.#world.clock.nowMs);
      sidecar.wire.cutUntilMs = 0;
      sidecar.onQueued = null;
    }
    if (this.open.length === 0) this.startSidecar();
  }

  #one(): Sidecar | undefined {
    return this.#world.choices.pick(this.alive);
  }

  /** SIGSTOP: its clocks go on. */
  #pause(sidecar = this.#one(), forMs = this.#aWhileMs()): void {
    const { clock, note, saw } = this.#world;
    if (sidecar === undefined) return;
    note(`${sidecar.name} paused for ${forMs}`);
    saw('paused');
    sidecar.pausedUntilMs = clock.nowMs + forMs;
  }

  /** Stops when its next request stands in the queue, which starts it about when it wakes, or a little later. */
  #stopInQueue(): void {
    const { choices, saw } = this.#world;
    const sidecar = this.#one();
    if (sidecar === undefined) return;
    sidecar.onQueued = () => {
      saw('stopped in the queue');
      const forMs = this.#aWhileMs();
      if (choices.chance(0.5)) this.#pause(sidecar, forMs);
      else this.#suspend(sidecar, forMs);
      return choices.chance(0.5) ? 1 : forMs + choices.between(0, 7_000);
    };
  }

  /** Its machine sleeps: monotonic time stands still. */
  #suspend(sidecar = this.#one(), forMs = this.#aWhileMs()): void {
    const { clock, note, saw } = this.#world;
    if (sidecar === undefined || sidecar.pausedUntilMs > clock.nowMs) return;
    note(`${sidecar.name} suspended for ${forMs}`);
    saw('suspended');
    sidecar.pausedUntilMs = clock.nowMs + forMs;
    clock.suspend(sidecar, forMs);
  }

  #aWhileMs(): number {
    const { choices } = this.#world;
    return choices.weighted([
      [1, () => choices.between(100, 3_000)],
      [2, () => choices.between(10_000, 26_000)],
      [2, () => choices.between(26_000, 60_000)],
    ])();
  }

  /** SIGKILL. Another takes its place. */
  #kill(): void {
    const { choices, clock, note, saw } = this.#world;
    const sidecar = this.#one();
    if (sidecar === undefined) return;
    note(`${sidecar.name} killed`);
    saw('killed');
    sidecar.isDead = true;
    clock.after(choices.between(1, 5_000), null, 'restart', () => this.startSidecar());
    for (const connection of sidecar.connections) connection.vanish();
  }

  /** SIGTERM. Another takes its place. */
  #drain(): void {
    const { choices, clock, note } = this.#world;
    const sidecar = this.#world.choices.pick(this.open);
    if (sidecar === undefined) return;
    note(`${sidecar.name} drains`);
    clock.after(0, sidecar, 'drain', () => void sidecar.drain());
    clock.after(choices.between(1, 5_000), null, 'another', () => this.startSidecar());
  }

  /** Forward only: a step back while the machine sleeps would hide the sleep from both clocks. */
  #setWallClock(): void {
    const sidecar = this.#one();
    if (sidecar !== undefined) sidecar.wallMs += this.#world.choices.between(1, 60_000);
  }

  #cutOff(): void {
    const { clock, note } = this.#world;
    const sidecar = this.#one();
    if (sidecar === undefined) return;
    const forMs = this.#aWhileMs();
    note(`${sidecar.name} cut off from the store for ${forMs}`);
    sidecar.wire.cutUntilMs = clock.nowMs + forMs;
  }

  #failOver(): void {
    const { note, saw, server } = this.#world;
    const lost = server.failOver();
    note(`failover: ${lost} writes lost`);
    saw(lost > 0 ? 'failover with a loss' : 'failover');
  }

  #failOverAsync(): void {
    const { choices, note, saw, server } = this.#world;
    const lost = server.failOverAsync(choices.between(1, 4));
    note(`failover: ${lost} settlements lost`);
    if (lost > 0) saw('failover that loses a settlement');
  }

  /** Looks, thinks, and decides on what was seen. */
  #operator(): void {
    const { choices, clock, server } = this.#world;
    const waiting = [...server.rows.values()].filter((row) => row.state === 'unknown');
    if (waiting.length === 0)
      return void clock.after(choices.between(2_000, 15_000), null, 'operator', () => this.#look());
    this.#look();
  }

  #look(): void {
    const { choices, clock, server } = this.#world;
    const [seen] = [...server.rows.values()].filter((row) => row.state === 'unknown');
    if (seen === undefined) return;
    clock.after(choices.between(10, 3_000), null, 'operator decides', () => this.#decide(seen));
  }

  #decide(seen: Row): void {
    const { choices, note, server, settings } = this.#world;
    const now = server.rows.get(seen.id);
    if (
      now === undefined ||
      now.attempt !== seen.attempt ||
      now.epoch !== seen.epoch ||
      now.state !== seen.state
    )
      return;
    const retainUntilMs = server.nowMs + settings.retentionMs;
    const isRelease = choices.chance(0.7);
    note(`operator ${isRelease ? 'releases' : 'completes'} ${seen.key}`);
    if (isRelease)
      server.put(seen.id, { ...now, state: 'failed_retryable', retainUntilMs }, 'operator_release');
    else {
      const body = Buffer.from(`${this.#bodyOf(now)} run 0 by hand`);
      const answer = { status: 200, headers: encodeStored(createMemos(), []), body, closeFramed: false };
      server.put(
        seen.id,
        { ...now, ...answer, state: 'completed', completedMs: server.nowMs, retainUntilMs },
        'operator_complete',
      );
    }
    // Else its answer is lost, and it may be visible and yet be lost in a failover.
    if (!settings.hasStandby || choices.chance(0.5)) server.acknowledge();
  }

  /** As sql/operator.ts: the answer goes, another attempt has the record, and for a minute nobody takes it. */
  #purge(): void {
    const { choices, note, server } = this.#world;
    const row = choices.pick([...server.rows.values()].filter(({ state }) => state === 'completed'));
    if (row === undefined) return;
    note(`operator purges ${row.key}`);
    const blockedUntilMs = server.nowMs + purgeBlockMs;
    const retainUntilMs = Math.max(row.retainUntilMs ?? 0, blockedUntilMs);
    const purged = {
      ...row,
      ...unanswered,
      retainUntilMs,
      blockedUntilMs,
      attempt: `purge of ${row.attempt}`,
    };
    server.put(row.id, { ...purged, state: 'failed_retryable' }, 'operator_purge');
    server.acknowledge();
  }

  #bodyOf({ requestId }: Row): string {
    return this.#world.ledger.bodyOf.get(requestId) as string;
  }
}
