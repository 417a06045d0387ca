import { type Finding, finding, notVacuous, type Outcome, type Table } from './drill.ts';
import { burstMs, type Hammered } from './hammer-tally.ts';
import type { Ran } from './hammer-upstream.ts';

export interface Hammering {
  readonly hammered: Hammered;
  readonly ran: Ran;
  /** Microseconds of processor time per call. */
  readonly cpu: Readonly<Record<'sidecars' | 'postgres' | 'upstream' | 'load', number>>;
  /** Requests as the sidecars counted them. */
  readonly verdicts: Readonly<Record<string, number>>;
  readonly inProgress: number;
  /** Records that are anything but completed. */
  readonly unfinished: number;
}

/** Nothing fails here on purpose: fewer, and the machine was too busy to say anything. */
const leastAnswered = 0.8;
/** Of keys whose duplicates were in flight together: fewer, and hardly anything raced. */
const leastRaced = 0.5;

export function outcomeOf(all: Hammering): Outcome {
  return { findings: findingsOf(all), tables: [callsOf(all), costOf(all)], facts: { ...all } };
}

function findingsOf({ hammered, ran, inProgress, unfinished }: Hammering): Finding[] {
  const { calls, keys, ends, unlike } = hammered;
  const answered = (ends['executed'] ?? 0) + (ends['replayed'] ?? 0);
  const never = ran.keys === keys ? [] : [`${keys - ran.keys} keys never ran`];
  const others = Object.entries(ends).filter(([end]) => end !== 'executed' && end !== 'replayed');
  const raced = racedShare(hammered);
  return [
    finding(
      'exactly one start per key',
      [...ran.twice, ...never],
      `${keys} keys, ${ran.starts} starts for ${calls} calls`,
    ),
    finding('the same bytes for all calls of a key', unlike, `${answered} answers`),
    finding(
      'every call ends with the answer',
      others.map(([end, n]) => `${n} ended with ${end}`),
      'none gave up, none unknown',
    ),
    finding(
      'nothing stays in progress',
      inProgress + unfinished === 0 ? [] : [`${inProgress} in progress, ${unfinished} not completed`],
      `${keys} records completed`,
    ),
    notVacuous(
      answered,
      calls,
      raced < leastRaced ? [`only ${percent(raced)} of the keys had duplicates in flight at once`] : [],
      leastAnswered,
    ),
  ];
}

const racedShare = ({ raced, bursts, again }: Hammered): number => raced / Math.max(1, bursts - again);
const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;

function callsOf({ hammered, verdicts }: Hammering): Table {
  const { ends, refusals, bursts, again, within } = hammered;
  const refused = (code: string): string => String(refusals[code] ?? 0);
  const unavailable = ['store_unavailable', 'answer_unsaved', 'overloaded'];
  return {
    title: `${hammered.calls} calls of ${hammered.keys} keys in ${bursts} bursts`,
    head: ['figure', 'value'],
    rows: [
      ['executed', String(ends['executed'] ?? 0)],
      ['replayed', String(ends['replayed'] ?? 0)],
      ['  of these had waited, by the sidecars', String(verdicts['wait'] ?? 0)],
      ['409 in_progress, asked again', refused('in_progress')],
      ['503, asked again', String(unavailable.reduce((sum, code) => sum + (refusals[code] ?? 0), 0))],
      ['keys with duplicates in flight at once', percent(racedShare(hammered))],
      ['bursts of a key that had come before', String(again)],
      [`bursts sent within ${burstMs} ms`, percent(within / bursts)],
    ],
  };
}

function costOf({ hammered, cpu }: Hammering): Table {
  const { calls, seconds, p50Ms, p99Ms } = hammered;
  return {
    title: 'what it cost; µs are processor time per call',
    head: [
      'seconds',
      'calls/s',
      'p50 ms',
      'p99 ms',
      'sidecars µs',
      'PostgreSQL µs',
      'upstream µs',
      'load µs',
    ],
    rows: [
      [
        seconds.toFixed(1),
        (calls / seconds).toFixed(0),
        p50Ms.toFixed(1),
        p99Ms.toFixed(1),
        ...[cpu.sidecars, cpu.postgres, cpu.upstream, cpu.load].map((us) => us.toFixed(0)),
      ],
    ],
  };
}
