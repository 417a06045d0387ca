import { bytesOf, type Told, wordOf } from './callers.ts';
import { type Finding, finding, notVacuous, type Outcome, type Table } from './drill.ts';
import type { Counted } from './hot-key.ts';

export interface Crowd {
  readonly first: readonly Told[];
  /** The same callers once more, after the answer. */
  readonly again: readonly Told[];
  /** Requests that reached the upstream. */
  readonly starts: number;
  /** Callers that were neither answered nor refused until the upstream answered. */
  readonly waiting: number;
  readonly waited: Counted;
  readonly arrived: Counted;
  /** Of each sidecar. */
  readonly beforeMb: readonly number[];
  readonly growthMb: readonly number[];
  readonly reasons: Readonly<Record<string, number>>;
}

const mostPerSecond = 20;
const mostGrowthMb = 200;
/** Fewer, and the figures say nothing about waiting. */
const leastWaiting = 1_000;

export function outcomeOf(crowd: Crowd): Outcome {
  const { first, again, ...facts } = crowd;
  return {
    findings: findingsOf(crowd),
    tables: [answersOf(first, again), figuresOf(crowd)],
    facts: { ...facts, first: tally(first), again: tally(again) },
  };
}

function findingsOf({ first, again, starts, waiting, waited, growthMb, reasons }: Crowd): Finding[] {
  const answered = first.filter(({ status }) => status === 201);
  const expected = /^(201 (executed|replayed)|409 in_progress)$/;
  const why = Object.keys(reasons).join(', ');
  const wrong = [
    ...first.filter((told) => !expected.test(answerOf(told))),
    ...again.filter(({ status }) => status !== 201),
  ];
  const unlike = [...answered, ...again.filter(({ status }) => status === 201)].filter(
    (told) => bytesOf(told) !== bytesOf(answered[0] as Told),
  );
  const perSecond = perSecondOf(waited);
  const speed = `${perSecond.toFixed(1)} a second while ${waiting} waited`;
  const growth = `${growthMb.map((mb) => mb.toFixed(0)).join(' and ')} MB at their peak`;
  return [
    finding('one execution', starts === 1 ? [] : [`${starts} starts`], '1 start'),
    finding(
      'each caller gets the answer or 409, and the answer when it asks again',
      wrong.map((told) => `${answerOf(told)} (${why})`),
      `${first.length} callers`,
    ),
    finding(
      'the same bytes for all',
      unlike.map(bytesOf),
      `${answered.length} answers, then ${again.length}`,
    ),
    finding(
      `waiting costs at most ${mostPerSecond} statements/s`,
      perSecond > mostPerSecond ? [speed] : [],
      speed,
    ),
    finding(
      `a sidecar grows by less than ${mostGrowthMb} MB`,
      growthMb.some((mb) => mb >= mostGrowthMb) ? [growth] : [],
      growth,
    ),
    notVacuous(
      answered.length + again.filter(({ status }) => status === 201).length,
      first.length + again.length,
      waiting < leastWaiting ? [`only ${waiting} waited`] : [],
    ),
  ];
}

const perSecondOf = ({ statements, ms }: Counted): number => (statements * 1_000) / ms;

const answerOf = (told: Told): string => `${told.status} ${wordOf(told)}`;

function tally(all: readonly Told[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const one of all) counts[answerOf(one)] = (counts[answerOf(one)] ?? 0) + 1;
  return counts;
}

function answersOf(first: readonly Told[], again: readonly Told[]): Table {
  const [atFirst, later] = [tally(first), tally(again)];
  const kinds = [...new Set([...Object.keys(atFirst), ...Object.keys(later)])].sort();
  return {
    title: 'what the callers got',
    head: ['answer', 'at first', 'asked again'],
    rows: kinds.map((kind) => [kind, String(atFirst[kind] ?? 0), String(later[kind] ?? 0)]),
  };
}

function figuresOf({ waiting, waited, arrived, beforeMb, growthMb }: Crowd): Table {
  const list = (values: readonly number[]): string => values.map((value) => value.toFixed(0)).join(', ');
  return {
    title: 'what it cost',
    head: ['figure', 'value'],
    rows: [
      ['callers that waited', String(waiting)],
      ['statements while all arrived', `${arrived.statements} in ${(arrived.ms / 1_000).toFixed(1)} s`],
      ['statements a second while they waited', perSecondOf(waited).toFixed(1)],
      ['sidecars before the first connection, MB', list(beforeMb)],
      ['their growth at the peak, MB', list(growthMb)],
    ],
  };
}
