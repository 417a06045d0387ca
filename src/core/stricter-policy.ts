import type { Policy } from './policy.ts';
import { type Outcome, type OutcomeTable, outcomeOf } from './settle.ts';

/** The policy of a request that may run under either of two. */
export type Stricter = (first: Policy, second: Policy) => Policy;

/** Makes each pair's policy once: the same two give the same object. For the policies of one config, so that it stays small. */
export function createStricter(): Stricter {
  const made = new Map<Policy, Map<Policy, Policy>>();
  return (first, second) => {
    const known = made.get(first)?.get(second);
    if (known !== undefined) return known;
    const both = stricterOf(first, second);
    const ofFirst = made.get(first) ?? new Map<Policy, Policy>();
    made.set(first, ofFirst.set(second, both));
    return both;
  };
}

/**
 * For a request that may run as either of two methods, whose routes differ: the key is needed if one needs it, the longer
 * retention counts, and of two outcomes the one that lets less run again. All else is as the first says. Both are of one
 * path, and so have one upstream.
 */
export function stricterOf(first: Policy, second: Policy): Policy {
  return {
    ...first,
    methods: [...first.methods, ...second.methods],
    requireKey: first.requireKey || second.requireKey,
    retentionMs: Math.max(first.retentionMs, second.retentionMs),
    outcomes: stricterOutcomes(first.outcomes, second.outcomes),
  };
}

/** Neither of the last two lets a retry run; `unknown` claims less. */
const strictness: Readonly<Record<Outcome, number>> = { release: 0, store: 1, unknown: 2 };

/** Every status by itself. A 503 counts as without Retry-After, which is never less strict. */
function stricterOutcomes(first: OutcomeTable, second: OutcomeTable): OutcomeTable {
  const overrides: Record<number, Outcome> = {};
  for (let status = 200; status < 600; status += 1) {
    const [a, b] = [outcomeOf(first, status, false), outcomeOf(second, status, false)];
    overrides[status] = strictness[a] >= strictness[b] ? a : b;
  }
  // Of the presets, this one alone looks at more than the status.
  const preset = second.preset === 'payments' ? second.preset : first.preset;
  return { preset, overrides };
}
