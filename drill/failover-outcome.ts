import { type Finding, finding, notVacuous, type Outcome, type Table } from './drill.ts';
import type { Failover } from './failover-pair.ts';
import type { Verified } from './verify.ts';

export interface Round extends Verified {
  readonly number: number;
  readonly plan: Failover;
  /** From the beginning of the fault, be that the standby cut off, to the first answer of the new primary. */
  readonly backAfterMs: number;
  readonly calls: number;
  readonly answered: number;
  readonly tries: Readonly<Record<string, number>>;
  readonly disagreements: readonly string[];
  /** Requests that reached the upstream from the failover on. */
  readonly starts: number;
  readonly inProgress: number;
  /** Keys that ran twice, the second time with an epoch that is not above the first. */
  readonly reused: readonly string[];
}

export function outcomeOf(
  replication: 'sync' | 'async',
  rounds: readonly Round[],
  more: readonly Finding[],
): Outcome {
  const all = <T>(of: (round: Round) => readonly T[]): T[] => rounds.flatMap(of);
  const sum = (of: (round: Round) => number): number => rounds.reduce((total, round) => total + of(round), 0);
  const keys = sum((round) => round.keys);
  const twice = all((round) => round.twice);
  const lost = all((round) => [...round.lost, ...round.disagreements]);
  const stays = all((round) =>
    round.inProgress > 0 ? [`${round.inProgress} in round ${round.number}`] : [],
  );
  const unfelt = rounds.filter((round) => (round.tries['store_unavailable'] ?? 0) === 0).length;
  const findings: Finding[] = [
    ...(replication === 'sync'
      ? [
          finding('at most once', twice, `${keys} keys, none reached the upstream twice`),
          finding('what a client saw is replayed', lost, `every answer seen, byte for byte`),
        ]
      : [loss(lost.length, twice.length, all((round) => round.reused).length)]),
    ...more,
    finding('nothing stays in progress', stays, 'none after lease + sweep + 5 s'),
    finding(
      'every key ends',
      all((round) => round.endless),
      'each answered or unknown',
    ),
    notVacuous(
      sum((round) => round.answered),
      sum((round) => round.calls),
      unfelt * 2 > rounds.length ? [`${unfelt} failovers that no client noticed`] : [],
    ),
  ];
  return { findings, tables: [tableOf(rounds)], facts: { replication, rounds } };
}

/** With an asynchronous standby the loss is what must be seen: without it this drill would prove nothing. */
function loss(lost: number, twice: number, reused: number): Finding {
  if (lost === 0 || twice === 0)
    return { kind: 'vacuous', promise: 'the loss is shown', evidence: 'no acknowledged commit was lost' };
  return {
    kind: 'limit',
    promise: 'documented limit, a failover that loses acknowledged commits',
    evidence: `${lost} answers lost and ${twice} keys run twice, ${reused} of them with an epoch not above the first`,
  };
}

function tableOf(rounds: readonly Round[]): Table {
  const kinds = [...new Set(rounds.map(kindOf))].sort();
  const rows = kinds.map((kind) => {
    const of = rounds.filter((round) => kindOf(round) === kind);
    const sum = (value: (round: Round) => number): string =>
      String(of.reduce((total, round) => total + value(round), 0));
    const times = of.map((round) => round.backAfterMs);
    return [
      kind,
      String(of.length),
      `${(Math.min(...times) / 1000).toFixed(1)}–${(Math.max(...times) / 1000).toFixed(1)}`,
      sum((round) => round.keys),
      sum((round) => round.tries['store_unavailable'] ?? 0),
      sum((round) => round.tries['answer_unsaved'] ?? 0),
      sum((round) => round.unknown.length),
      sum((round) => round.needlesslyUnknown.length),
      sum((round) => round.lost.length + round.disagreements.length),
      sum((round) => round.twice.length),
      sum((round) => round.inProgress),
    ];
  });
  const head = [
    'the primary',
    'rounds',
    'back after s',
    'keys',
    '503',
    'unsaved',
    'unknown',
    'never sent',
    'lost',
    'twice',
    'in progress',
  ];
  return { title: 'failovers', head, rows };
}

function kindOf({ plan: { how, partitionMs, connections } }: Round): string {
  if (partitionMs === 0) return how;
  const more = connections === 'left alone' ? '' : `, connections ${connections}`;
  return `${how}, standby cut off before${more}`;
}
