import { EventQueue, type SimEvent } from './event-queue.ts';

/** Something that runs code: a sidecar. While it is paused nothing of it happens; once it has died nothing ever does. */
export interface Owner {
  readonly name: string;
  isDead: boolean;
  pausedUntilMs: number;
  /** Its clocks against the simulation's: monotonic time stands still while a machine is suspended, wall time may be set. */
  monotonicMs: number;
  wallMs: number;
}

const real = {
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  setImmediate: globalThis.setImmediate,
  dateNow: Date.now,
  random: Math.random,
};

/** 2026, so that dates in headers look like dates. */
const wallStartMs = 1_780_000_000_000;

/** Virtual time: one queue for the timers of all sidecars and for all that reaches them. Promises stay native. */
export class Clockwork {
  readonly #queue = new EventQueue();
  readonly #random: () => number;
  nowMs = 0;
  steps = 0;
  /** What is still on its way to somebody, timers left aside. */
  outside = 0;
  current: Owner | null = null;
  /** Told of each event that fires. */
  onStep: ((event: SimEvent) => void) | null = null;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** `owner` null: it happens outside every sidecar, and no code of theirs runs in it. */
  after(delayMs: number, owner: Owner | null, label: string, run: () => void): SimEvent {
    this.outside += 1;
    return this.#queue.push({ atMs: this.nowMs + delayMs, owner, label, run, isTimer: false });
  }

  /** Fires what comes next, and lets all promises come to rest. false: nothing is left. */
  async step(): Promise<boolean> {
    const event = this.#queue.pop();
    if (event === null) return false;
    this.nowMs = Math.max(this.nowMs, event.atMs);
    const { owner } = event;
    if (owner !== null && !owner.isDead) {
      if (owner.pausedUntilMs > this.nowMs) {
        // All that was missed comes at once: timers in their order, input before them, between them or after.
        const afterMs = event.isTimer ? 1 : this.#random() * 2;
        this.#queue.again(event, owner.pausedUntilMs + afterMs);
        return true;
      }
    }
    if (!event.isTimer) this.outside -= 1;
    if (owner?.isDead === true) return true;
    this.steps += 1;
    this.onStep?.(event);
    this.current = owner;
    event.run();
    if (owner !== null) await new Promise<void>((resolve) => real.setImmediate(resolve));
    this.current = null;
    return true;
  }

  /** Its timers are on monotonic time, which stands still for so long. */
  suspend(owner: Owner, forMs: number): void {
    owner.monotonicMs -= forMs;
    this.#queue.delay((event) => event.isTimer && event.owner === owner, forMs);
  }

  install(): void {
    const timer = (run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]): SimEvent =>
      this.#queue.push({
        atMs: this.nowMs + Math.max(ms, 1),
        owner: this.current,
        label: 'timer',
        run: args.length === 0 ? run : () => run(...args),
        isTimer: true,
      });
    const immediate = (run: () => void): SimEvent =>
      this.#queue.push({ atMs: this.nowMs, owner: this.current, label: 'turn', run, isTimer: true });
    const clear = (event: SimEvent | undefined): void => {
      if (event !== undefined && event !== null) event.isCancelled = true;
    };
    Object.assign(globalThis, { setTimeout: timer, clearTimeout: clear, setImmediate: immediate });
    Date.now = () => wallStartMs + this.nowMs + (this.current?.wallMs ?? 0);
    performance.now = () => this.nowMs + (this.current?.monotonicMs ?? 0);
    Math.random = this.#random;
  }

  uninstall(): void {
    const { setTimeout, clearTimeout, setImmediate } = real;
    Object.assign(globalThis, { setTimeout, clearTimeout, setImmediate });
    Date.now = real.dateNow;
    Math.random = real.random;
    // Its own method, from the prototype.
    Reflect.deleteProperty(performance, 'now');
  }
}
