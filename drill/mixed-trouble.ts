import { setTimeout as delay } from 'node:timers/promises';
import type { Teardown } from '../test/helpers/postgres.ts';
import { type Fault, faults } from './mixed-faults.ts';
import type { MixedScene } from './mixed-scene.ts';
import { Random } from './random.ts';

/** Milliseconds from one fault to the next. */
const leastPauseMs = 1_000;
const mostPauseMs = 4_000;
/** One replica always is as it should be, but for what befalls PostgreSQL. */
const mostReplicas = 2;

export interface Happened {
  readonly name: string;
  /** null: what befell all of them. */
  readonly replica: number | null;
  readonly afterMs: number;
  ms: number;
}

/** One fault after the other, each kind in its turn of a shuffled round; a long one may meet the next. */
export class Trouble {
  readonly happened: Happened[] = [];
  readonly #t: Teardown;
  readonly #scene: MixedScene;
  readonly #seed: number;
  readonly #random: Random;
  readonly #busy = new Set<number | 'store'>();
  readonly #underWay = new Set<Promise<void>>();
  readonly #startedMs = performance.now();
  readonly #stopping = new AbortController();
  readonly #work: Promise<void>;
  #round: Fault[] = [];

  constructor(t: Teardown, scene: MixedScene, seed: number) {
    this.#t = t;
    this.#scene = scene;
    this.#seed = seed;
    this.#random = new Random(seed);
    this.#work = this.#run();
    // Heard by `stop`, perhaps much later.
    this.#work.catch(() => {});
  }

  /** Back when everything is healed; rejects when something could not be. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#work;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const pauseMs = this.#random.between(leastPauseMs, mostPauseMs);
      await delay(pauseMs, undefined, { signal }).catch(() => {});
      if (!signal.aborted) this.#make();
    }
    await Promise.all(this.#underWay);
  }

  /** The next of the round for which there is a place. */
  #make(): void {
    if (this.#round.length === 0) this.#round = [...faults];
    const free = this.#scene.replicas.map((_, i) => i).filter((i) => !this.#busy.has(i));
    const hasReplica = free.length > this.#scene.replicas.length - mostReplicas;
    const fitting = this.#round.filter(({ on }) =>
      on === 'replica' ? hasReplica : !this.#busy.has('store'),
    );
    if (fitting.length === 0) return;
    const fault = this.#random.pick(fitting);
    this.#round = this.#round.filter((one) => one !== fault);
    const work = this.#befall(fault, fault.on === 'replica' ? this.#random.pick(free) : 'store');
    this.#underWay.add(work);
    // A fault that could not be healed is kept, for `stop` to reject with.
    work.then(() => this.#underWay.delete(work)).catch(() => {});
  }

  async #befall({ name, run }: Fault, on: number | 'store'): Promise<void> {
    const fromMs = performance.now();
    const replica = on === 'store' ? null : on;
    const happened = { name, replica, afterMs: Math.round(fromMs - this.#startedMs), ms: 0 };
    this.happened.push(happened);
    this.#busy.add(on);
    // Of its own: what happens at once must not change each other's choices.
    const random = new Random(this.#seed + this.happened.length);
    const site = { t: this.#t, scene: this.#scene, random };
    await run({
      ...site,
      replica: this.#scene.replicas[replica ?? 0] as (typeof site.scene.replicas)[number],
    });
    this.#busy.delete(on);
    happened.ms = Math.round(performance.now() - fromMs);
  }
}
