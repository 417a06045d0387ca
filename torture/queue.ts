import { cellsOf, type LaneKind, type Plan, type PlanOptions, plansOf } from './plan.ts';
import type { Result } from './results.ts';
import { cellName, gapsIn } from './summary.ts';

/** What is left to play. */
export class Queue {
  readonly #plans: Plan[];

  constructor(plans: Iterable<Plan>) {
    this.#plans = [...plans];
  }

  get left(): number {
    return this.#plans.length;
  }

  wants(kind: LaneKind): boolean {
    return this.#plans.some(({ lane }) => lane === kind);
  }

  next(kind: LaneKind): Plan | null {
    const index = this.#plans.findIndex(({ lane }) => lane === kind);
    return index < 0 ? null : (this.#plans.splice(index, 1)[0] ?? null);
  }
}

/** So many that were not played yet. */
export function* nextPlans(options: PlanOptions, all: readonly Result[], runs: number): Generator<Plan> {
  const done = new Set(all.filter((one) => one.seed === options.seed).map(({ run }) => run));
  let left = runs;
  for (const plan of plansOf(options)) {
    if (left === 0) return;
    if (done.has(plan.number)) continue;
    left -= 1;
    yield plan;
  }
}

/** One time round, of what every time round so far has missed by chance. */
export function plansForGaps(options: PlanOptions, all: readonly Result[]): Plan[] {
  const { cells, states } = gapsIn(all);
  // Every second round makes rare states on purpose.
  const runs = 2 * cellsOf(0, options).length;
  return [...nextPlans(options, all, runs)].filter(
    ({ point, action, lane, makes }) =>
      cells.has(cellName({ point: point.name, action, lane })) || makes.some((state) => states.has(state)),
  );
}
