import { type Finding, finding, notVacuous, type Outcome, type Table } from './drill.ts';
import type { Load } from './load.ts';
import type { Happened } from './mixed-trouble.ts';
import type { Visits } from './mixed-visits.ts';
import type { MoodyUpstream } from './moody-upstream.ts';
import type { Verified } from './verify.ts';

export interface Mixed {
  readonly seconds: number;
  readonly load: Load;
  readonly visits: Visits;
  readonly upstream: MoodyUpstream;
  readonly happened: readonly Happened[];
  /** Of replicas that ended before they served, and were started once more. */
  readonly failedStarts: readonly string[];
  readonly inProgress: number;
  readonly verified: Verified;
  /** Unknown keys that a retry got anything else of than a refusal. */
  readonly ranUnknown: readonly string[];
  /** Starts that no answer of the upstream had made way for. */
  readonly ranAgain: readonly string[];
}

/** So much trouble, and still the greater part. */
const leastAnswered = 0.6;
/** Seconds for one fault: fewer, and the load ran undisturbed. */
const secondsPerFault = 6;

export function outcomeOf(all: Mixed): Outcome {
  const { load, visits, upstream, ...facts } = all;
  const { calls, answered, tries, disagreements } = load;
  const { passed, reused, left, leaks } = visits;
  const starts = upstream.starts.length;
  const seen = { calls, answered, tries, disagreements, passed, reused, left, leaks };
  const ran = { starts, moods: upstream.moods, freed: upstream.freed };
  return { findings: findingsOf(all), tables: tablesOf(all), facts: { ...facts, ...seen, ...ran } };
}

function findingsOf(all: Mixed): Finding[] {
  const { seconds, load, visits, upstream, happened, inProgress, verified, ranUnknown, ranAgain } = all;
  const { keys, lost, unknown, endless, twice } = verified;
  const refused = visits.reused['key_reused'] ?? 0;
  const others = Object.keys(visits.reused).filter((code) => /^\d+$/.test(code));
  const few = happened.length < seconds / secondsPerFault ? [`only ${happened.length} faults`] : [];
  const unfelt = (load.tries['store_unavailable'] ?? 0) === 0 ? ['no client met a store away'] : [];
  return [
    finding(
      'at most once, but for keys that an answer freed',
      ranAgain,
      `${upstream.starts.length} starts of ${keys} keys; ${twice.length} ran again, each after one of ${upstream.freed} answers that free`,
    ),
    finding(
      'what a client saw is replayed',
      [...lost, ...load.disagreements],
      'every answer seen, byte for byte',
    ),
    finding(
      'a reused key shows nothing',
      [...visits.leaks, ...others.map((status) => `answered with ${status}`)],
      `${refused} × 422`,
    ),
    finding(
      'nothing stays in progress',
      inProgress === 0 ? [] : [`${inProgress} records`],
      'none after lease + sweep + 5 s',
    ),
    finding('an unknown key never runs', ranUnknown, `${unknown.length} keys, refused by every replica`),
    finding('every key ends', endless, 'each answered or unknown'),
    notVacuous(load.answered, load.calls, [...few, ...unfelt], leastAnswered),
  ];
}

function tablesOf(all: Mixed): Table[] {
  const { seconds, load, visits, upstream, happened, failedStarts, verified } = all;
  const { keys, unknown, needlesslyUnknown, lost } = verified;
  const share = `${((100 * load.answered) / load.calls).toFixed(1)} %`;
  const figures = [
    keys,
    load.calls,
    share,
    upstream.starts.length,
    unknown.length,
    needlesslyUnknown.length,
    lost.length,
    failedStarts.length,
  ];
  return [
    {
      title: `${seconds} s of load`,
      head: ['keys', 'calls', 'answered', 'starts', 'unknown', 'never sent', 'lost', 'failed starts'],
      rows: [figures.map(String)],
    },
    { title: 'faults', head: ['what', 'times', 'lasted s'], rows: faultRows(happened) },
    counted('tries came to', load.tries),
    counted('the upstream', upstream.moods),
    counted('passed through', visits.passed),
    counted('another body with a known key', visits.reused),
    counted('clients that left', visits.left),
  ];
}

function faultRows(happened: readonly Happened[]): string[][] {
  return [...new Set(happened.map(({ name }) => name))].sort().map((name) => {
    const of = happened.filter((one) => one.name === name).map(({ ms }) => ms / 1_000);
    return [name, String(of.length), `${Math.min(...of).toFixed(1)}–${Math.max(...of).toFixed(1)}`];
  });
}

function counted(title: string, counts: Readonly<Record<string, number>>): Table {
  const rows = Object.entries(counts).sort(([, a], [, b]) => b - a);
  return { title, head: ['what', 'times'], rows: rows.map(([what, n]) => [what, String(n)]) };
}
