import { finding, notVacuous, type Outcome } from './drill.ts';
import type { Round } from './suspend-round.ts';

export function outcomeOf(rounds: readonly Round[]): Outcome {
  const sum = (of: (round: Round) => number): number => rounds.reduce((total, round) => total + of(round), 0);
  const queued = sum(({ plan }) => plan.queued);
  const sentBefore = sum(({ old }) => old.sentBefore);
  // The one that the upstream held was sent; of those behind it none may have been.
  const unlike = rounds
    .filter(({ old }) => old.sentBefore !== 1)
    .map(({ number, old }) => `round ${number}: ${old.sentBefore} sent before it slept`);
  const kinds = [...new Set(rounds.map(kindOf))].sort();
  const rows = kinds.map((kind) => {
    const of = rounds.filter((round) => kindOf(round) === kind);
    const count = (value: (round: Round) => number): string =>
      String(of.reduce((total, round) => total + value(round), 0));
    return [
      kind,
      String(of.length),
      count(({ plan }) => plan.queued),
      count(({ old }) => old.sentBefore),
      count(({ old }) => old.sentAfterWaking.length),
      tally(of.flatMap(({ told }) => told)),
    ];
  });
  return {
    findings: [
      finding(
        'who slept past its lease sends nothing any more',
        rounds.flatMap(({ old }) => old.sentAfterWaking),
        `${queued} requests slept in its queue, none was sent after it woke`,
      ),
      finding(
        'a retry never runs an unknown key, and a released one runs once',
        rounds.flatMap(({ faults }) => faults),
        `${queued + rounds.length} keys: refused while unknown, run once after their release, replayed by both`,
      ),
      notVacuous(
        sum(({ answered }) => answered),
        sum(({ calls }) => calls),
        unlike,
      ),
    ],
    tables: [
      {
        title: `${rounds.length} rounds; before they slept ${sentBefore} requests had been sent`,
        head: ['variant', 'rounds', 'queued', 'sent before', 'sent after waking', 'its clients were told'],
        rows,
      },
    ],
    facts: { rounds },
  };
}

const kindOf = ({ plan: { letGo, rerun } }: Round): string => `${letGo}, ${rerun}`;

function tally(words: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts].map(([word, count]) => `${count} ${word}`).join(', ');
}
