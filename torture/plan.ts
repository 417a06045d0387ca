import { Random } from '../drill/random.ts';
import { type Action, coreActions, moreActions, type Point, points } from './points.ts';
import type { Path } from './policies.ts';
import type { RareState } from './rare.ts';

/** `crash` and `standby` have three replicas too, and a PostgreSQL that no other lane uses. */
export type LaneKind = 'one' | 'three' | 'crash' | 'standby';

/**
 * What a cut does to what is on its way. `before`: the other side never gets it. `after`: it does, and its answer is lost.
 * `hole`: nothing moves, nobody is told. `rival`: as `before`, and meanwhile another replica runs the key.
 */
type Cut = 'before' | 'after' | 'hole' | 'rival';

/** Every choice of one faulted run. */
export interface Plan {
  readonly number: number;
  readonly point: Point;
  readonly action: Action;
  readonly lane: LaneKind;
  readonly victim: number;
  readonly path: Path;
  /** What the upstream answers the first time it gets the key, the second time, and so on. */
  readonly statuses: readonly number[];
  readonly requestBytes: number;
  readonly answerBytes: number;
  readonly cut: Cut;
  /** A cut that outlasts the lease. */
  readonly isLong: boolean;
  /** The same key asked for at the same time, on another replica where there is one. */
  readonly hasDuplicate: boolean;
  /** An operator frees the key, once it is unknown, while the process sleeps; another replica runs it. */
  readonly hasOperator: boolean;
  /** The upstream lets go of what it holds while the fault lasts; else after it. */
  readonly answersDuring: boolean;
  /** The rare states that all these choices are there for. */
  readonly makes: readonly RareState[];
}

export interface PlanOptions {
  readonly seed: number;
  readonly hasStandby: boolean;
  readonly point?: string;
  readonly action?: string;
}

interface Cell {
  readonly point: Point;
  readonly action: Action;
  readonly lane: LaneKind;
}

/** Of each action beyond the core ones, in each round. */
const morePerRound = 6;

/** One time round: every point with every core action on one and on three replicas, in an order of its own. */
export function cellsOf(round: number, options: PlanOptions): Cell[] {
  const random = new Random(options.seed * 7_919 + round);
  const cells: Cell[] = [];
  for (const point of points)
    for (const action of coreActions)
      for (const lane of ['one', 'three'] as const) cells.push({ point, action, lane });
  for (const action of moreActions) {
    if (action === 'freeze standby' && !options.hasStandby) continue;
    for (const point of sample(random, points, options.action === action ? points.length : morePerRound))
      cells.push({ point, action, lane: laneFor(random, action) });
  }
  const wanted = cells.filter(
    ({ point, action }) =>
      (options.point === undefined || point.name === options.point) &&
      (options.action === undefined || action === options.action),
  );
  return sample(random, wanted, wanted.length);
}

function laneFor(random: Random, action: Action): LaneKind {
  if (action === 'crash postgres') return 'crash';
  if (action === 'freeze standby') return 'standby';
  return random.pick(['one', 'three']);
}

/** Without putting back. */
function sample<T>(random: Random, from: readonly T[], count: number): T[] {
  const left = [...from];
  return Array.from({ length: Math.min(count, left.length) }, () =>
    left.splice(random.between(0, left.length - 1), 1),
  ).flat();
}

/** All runs of this seed, in order: the same ones every time, without end. */
export function* plansOf(options: PlanOptions): Generator<Plan> {
  for (let round = 0, number = 0; ; round += 1) {
    const cells = cellsOf(round, options);
    if (cells.length === 0) throw new Error('no such point or action');
    for (const cell of cells) {
      yield choose(cell, number, round, new Random(options.seed * 104_729 + number));
      number += 1;
    }
  }
}

function choose(cell: Cell, number: number, round: number, random: Random): Plan {
  const { point, action, lane } = cell;
  const replicas = lane === 'one' ? 1 : 3;
  const isWire = point.site.kind === 'upstream line' || point.site.kind === 'client line';
  const path = random.pick(point.paths);
  const plan: Plan = {
    number,
    point,
    action,
    lane,
    victim: random.between(0, replicas - 1),
    path,
    statuses: random.pick([[201], [201], [201], [200], [429, 201], [500, 201]]),
    requestBytes: point.site.kind === 'upstream line' ? 60_000 : random.pick([0, 0, 500, 5_000]),
    answerBytes: point.site.kind === 'client line' ? 60_000 : random.pick([0, 200, 3_000]),
    cut: random.pick(
      replicas > 1 && !isWire ? ['before', 'after', 'hole', 'rival'] : ['before', 'after', 'hole'],
    ),
    isLong: random.chance(0.4),
    hasDuplicate: random.chance(0.35),
    hasOperator: action === 'stop' && replicas > 1 && random.chance(0.35),
    answersDuring: random.chance(0.5),
    makes: [],
  };
  const chosen = round % 2 === 0 ? { ...plan, ...directed(cell) } : plan;
  return { ...chosen, statuses: statusesFor(chosen, random) };
}

/** A key is taken over when its answer freed it, or is past its retention; a reaper wants one that is kept. */
function statusesFor({ point, path, statuses }: Plan, random: Random): readonly number[] {
  if (point.scene === 'again' && path !== '/brief')
    return random.pick([
      [429, 201],
      [500, 201],
    ]);
  return point.scene === 'again' || point.scene === 'expired' ? [201] : statuses;
}

/** What chance would leave out of a short run: each rare state has a cell that makes it. */
function directed({ point, action, lane }: Cell): Partial<Plan> {
  const { name } = point;
  const plain = { path: '/plain', statuses: [201] } as const;
  if (name === 'reserve sent' && action === 'cut postgres')
    return lane === 'one'
      ? { ...plain, cut: 'after', isLong: false, makes: ['unconfirmed reserve, mine'] }
      : { ...plain, cut: 'rival', isLong: false, makes: ['unconfirmed reserve, not mine'] };
  if (name === 'request sent' && action === 'stop' && lane === 'three')
    return { ...plain, hasOperator: true, makes: ['operator freed an unknown key', 'late answer refused'] };
  if (name === 'response complete' && action === 'stop' && lane === 'three')
    return { ...plain, hasOperator: false, makes: ['late answer accepted'] };
  if (name === 'answer sent' && lane === 'three')
    return { ...plain, path: '/large', answerBytes: 3_000, makes: ['oversized answer'] };
  if (name === 'answer sent') return { ...plain, answerBytes: 3_000 };
  if (point.scene === 'again' && lane === 'three')
    return { path: '/brief', makes: ['expired record taken over'] };
  return point.scene === 'again' ? { path: '/plain' } : {};
}
