import type { Call, RunFacts, Start } from './facts.ts';
import { outcomeOf, policyOf } from './policies.ts';

export interface Violation {
  readonly rule: string;
  readonly what: string;
}

type Rule = (facts: RunFacts) => string[];

/** Milliseconds that bytes may take from a sidecar's last check to the upstream's log, on a busy machine. */
const wayMs = 100;

/** All that a run must have kept. Pure: the logs of upstream and clients and the rows of the database go in. */
export const rules: Readonly<Record<string, Rule>> = {
  'at most once': atMostOnce,
  'the same answer': sameAnswer,
  'an answer that was seen is kept': seenIsKept,
  'no store, no start': noStoreNoStart,
  'unknown never runs': unknownNeverRuns,
  'nothing stays in progress': nothingStays,
  'nothing crosses tenants': nothingCrosses,
  '422 shows nothing': refusalShowsNothing,
};

export function check(facts: RunFacts): Violation[] {
  return Object.entries(rules).flatMap(([rule, look]) => look(facts).map((what) => ({ rule, what })));
}

/** Answered by an execution or a replay. */
export function isServed(call: Call): boolean {
  return call.end === 'answered' && (call.how === 'executed' || call.how === 'replayed') && call.code === '';
}

const idOf = ({ tenant, key }: { tenant: string; key: string }): string => `${tenant} ${key}`;

function groupBy<T>(all: readonly T[], id: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) groups.set(id(one), [...(groups.get(id(one)) ?? []), one]);
  return groups;
}

/**
 * When a start had freed its key for another: an answer that the outcome table calls a release, or one that was stored
 * and is past its retention. null: it never did. It errs early for a release, and never for a retention, since what is
 * stored is stored after it was answered.
 */
function freedAt({ path, replica, answer }: Start): number | null {
  if (answer === null) return null;
  switch (outcomeOf(path, replica, answer.status)) {
    case 'release':
      return answer.at;
    case 'store':
      return answer.at + policyOf(path, replica).retentionMs;
    case 'unknown':
      return null;
  }
}

/** How often the key was provably free again by then. */
function freedBefore(facts: RunFacts, start: Start, others: readonly Start[]): number {
  const byAnswer = others.filter((other) => {
    const at = other === start ? null : freedAt(other);
    return at !== null && at <= start.at;
  });
  const byOperator = facts.freed.filter((one) => idOf(one) === idOf(start) && one.at <= start.at);
  return byAnswer.length + byOperator.length;
}

/** Every start counts whose head reached the upstream; whether it got the whole request nobody asks. */
function atMostOnce(facts: RunFacts): string[] {
  return [...groupBy(facts.starts, idOf).values()].flatMap((starts) => {
    const inOrder = starts.toSorted((a, b) => a.at - b.at);
    return inOrder
      .filter((start, before) => before > freedBefore(facts, start, inOrder))
      .map((start) => `${idOf(start)}: start ${start.start} of ${starts.length} had no right to be`);
  });
}

/**
 * What a client saw is what the upstream said, and what every later call gets, within retention: those bytes, or that it must
 * wait (409, 503). Never another answer, nor the sign of another try (502, 504).
 */
function sameAnswer(facts: RunFacts): string[] {
  const byName = new Map(facts.starts.map((start) => [start.start, start]));
  return facts.calls.filter(isServed).flatMap((seen) => {
    const start = byName.get(seen.names.start);
    if (start?.answer?.digest !== seen.digest)
      return [`${idOf(seen)}: call ${seen.call} got bytes that the upstream never sent`];
    const keptUntil = start.answer.at + policyOf(start.path, start.replica).retentionMs;
    return facts.calls
      .filter(
        (later) => idOf(later) === idOf(seen) && later.beganAt > seen.endedAt && later.endedAt < keptUntil,
      )
      .filter((later) => !isAllowedAfter(seen, later))
      .map(
        (later) =>
          `${idOf(seen)}: call ${seen.call} got ${seen.status} ${seen.digest}, call ${later.call} then ${later.status} ${later.code || later.digest}`,
      );
  });
}

function isAllowedAfter(seen: Call, later: Call): boolean {
  if (later.end !== 'answered') return true;
  if (later.body === 'differs') return [422, 409, 503].includes(later.status);
  return isServed(later) ? later.digest === seen.digest : later.status === 409 || later.status === 503;
}

/** Durable before seen: whatever was killed or cut, what a client saw is in the database at the end. */
function seenIsKept({ calls, looks, starts }: RunFacts): string[] {
  const last = new Map(looks.map((look) => [idOf(look), look]));
  const seen = new Map(calls.filter(isServed).map((call) => [idOf(call), call]));
  return [...seen.values()].flatMap((call) => {
    const start = starts.find((one) => one.start === call.names.start);
    const look = last.get(idOf(call));
    const end = Math.max(...looks.map(({ at }) => at), 0);
    const expires = (start?.answer?.at ?? 0) + policyOf(call.path, start?.replica ?? 0).retentionMs;
    if (expires <= end) return [];
    if (look?.state === 'completed' && (start === undefined || look.attempt === start.attempt)) return [];
    return [`${idOf(call)}: call ${call.call} was answered, and the record is ${look?.state ?? 'not there'}`];
  });
}

/** Asked for after the line to the store was cut: nothing of it may reach the upstream until the line is back. */
function noStoreNoStart({ fault: { storeCut, replica }, calls, starts }: RunFacts): string[] {
  if (storeCut === null) return [];
  const asked = new Set(
    calls.filter((call) => call.replica === replica && call.beganAt >= storeCut.from).map(({ call }) => call),
  );
  return starts
    .filter((start) => asked.has(start.call) && start.at < storeCut.until)
    .map((start) => `${idOf(start)}: start ${start.start} while the store was out of reach`);
}

/**
 * Once a key was seen unknown, by a client or in the database, it starts no more, not even for the first time, unless
 * something freed it since: an operator, an answer, or the word of its own attempt that it was never sent. The one gap: a
 * process that sleeps between the last check and the write sends when it wakes.
 */
function unknownNeverRuns(facts: RunFacts): string[] {
  const { fault, calls, looks, starts } = facts;
  /** When each key was first seen so, and when under which attempt. */
  const unknown = new Map<string, { at: number; underAttempt: Map<string, number> }>();
  const note = (id: string, at: number, attempt: string): void => {
    const { at: before, underAttempt } = unknown.get(id) ?? { at, underAttempt: new Map<string, number>() };
    underAttempt.set(attempt, Math.min(at, underAttempt.get(attempt) ?? at));
    unknown.set(id, { at: Math.min(at, before), underAttempt });
  };
  for (const call of calls) if (call.code === 'outcome_unknown') note(idOf(call), call.endedAt, '');
  for (const look of looks) if (look.state === 'unknown') note(idOf(look), look.at, look.attempt);
  const wokeInTheGap = fault.point === 'request start' && fault.action === 'stop' ? fault.replica : -1;
  return starts
    .filter(({ replica }) => replica !== wokeInTheGap)
    .filter((start) => {
      const doubt = unknown.get(idOf(start));
      if (doubt === undefined || start.at <= doubt.at + wayMs) return false;
      // Its own attempt was called unknown before: nothing frees that. An answer that leaves it unknown comes after it.
      if (start.at > (doubt.underAttempt.get(start.attempt) ?? Number.POSITIVE_INFINITY) + wayMs) return true;
      const same = starts.filter((one) => idOf(one) === idOf(start));
      return freedBefore(facts, start, same) === 0 && !saidUnsent(facts, start, same);
    })
    .map((start) => `${idOf(start)}: start ${start.start} after it was unknown`);
}

/** The upstream had nothing of the key until then, and whoever had it said so, as far as anybody could hear it. */
function saidUnsent({ calls, looks, fault }: RunFacts, start: Start, same: readonly Start[]): boolean {
  if (fault.action === 'kill' || same.some(({ at }) => at < start.at)) return false;
  const words = calls.filter((call) => idOf(call) === idOf(start) && call.endedAt <= start.at);
  return (
    words.some(({ how, end }) => how === 'released' || end !== 'answered') ||
    looks.some(
      (look) => idOf(look) === idOf(start) && look.state === 'failed_retryable' && look.at <= start.at,
    )
  );
}

function nothingStays({ stillInProgress }: RunFacts): string[] {
  return stillInProgress.map((id) => `${id} is in progress long after everything was well again`);
}

function nothingCrosses({ calls, starts }: RunFacts): string[] {
  const tokensOf = groupBy(starts, ({ tenant }) => tenant);
  return calls.flatMap((call) => {
    const { names, text } = call;
    if (names.start !== '' && idOf(names) !== idOf(call))
      return [`${idOf(call)}: call ${call.call} got the answer of ${idOf(names)}`];
    const foreign = [...tokensOf].filter(([tenant]) => tenant !== call.tenant).flatMap(([, all]) => all);
    return foreign.some(({ answer }) => answer !== null && text.includes(answer.token))
      ? [`${idOf(call)}: call ${call.call} shows what another tenant got`]
      : [];
  });
}

/** Neither of the stored answer nor of the stored request. */
function refusalShowsNothing({ calls, starts, secret }: RunFacts): string[] {
  const stored = [secret, ...starts.flatMap(({ answer }) => (answer === null ? [] : [answer.token]))];
  return calls
    .filter((call) => call.status === 422)
    .filter((call) => call.names.start !== '' || stored.some((bytes) => call.text.includes(bytes)))
    .map((call) => `${idOf(call)}: call ${call.call}`);
}
