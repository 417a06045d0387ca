/** What the upstream's answer, or its absence, means for the record. */
export type Outcome = 'store' | 'release' | 'unknown';

export const presetNames = ['standard', 'stripe', 'payments'] as const;
export type PresetName = (typeof presetNames)[number];

/** A preset and the statuses that a route overrides. */
export interface OutcomeTable {
  readonly preset: PresetName;
  readonly overrides: Readonly<Record<number, Outcome>>;
}

/** How the one dispatch of an attempt ended. Made by upstream/client.ts, judged here. */
export type Ending =
  /** Request-start never happened (or we aborted in it): zero bytes left, the upstream provably did not run. */
  | { readonly kind: 'not_started'; readonly error: Error }
  /** Bytes may have left and no complete answer came. `status` where the head was seen. */
  | {
      readonly kind: 'broken';
      readonly status: number | null;
      readonly timedOut: boolean;
      readonly error: Error;
    }
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly hasRetryAfter: boolean;
      /** The upstream's own word: the value of `Oncegate-Outcome`, or null. */
      readonly upstreamSays: string | null;
      readonly closeFramed: boolean;
    };

const notExecuted: ReadonlySet<number> = new Set([401, 403, 407, 408, 421, 425, 429, 431]);

export function settle(ending: Ending, table: OutcomeTable): Outcome {
  switch (ending.kind) {
    case 'not_started':
      return 'release';
    case 'broken':
      return 'unknown';
    case 'answered':
      return settleAnswer(ending, table);
  }
}

function settleAnswer(ending: Extract<Ending, { kind: 'answered' }>, table: OutcomeTable): Outcome {
  // What only a close ended may have been cut: to payments it is no answer, whatever the table or its own head says.
  if (ending.closeFramed && table.preset === 'payments') return 'unknown';
  // The upstream knows best; a value we do not know is no word at all.
  switch (ending.upstreamSays?.trim().toLowerCase()) {
    case 'executed':
      return 'store';
    case 'not-executed':
      return 'release';
    case 'unknown':
      return 'unknown';
  }
  return outcomeOf(table, ending.status, ending.hasRetryAfter);
}

export function outcomeOf(table: OutcomeTable, status: number, hasRetryAfter: boolean): Outcome {
  return table.overrides[status] ?? presetOutcome(table.preset, status, hasRetryAfter);
}

function presetOutcome(preset: PresetName, status: number, hasRetryAfter: boolean): Outcome {
  if (preset === 'stripe') return status === 401 || status === 429 ? 'release' : 'store';
  if (status < 500) return notExecuted.has(status) ? 'release' : 'store';
  if (preset === 'payments') return 'unknown';
  // Envoy answers 503 also after it delivered the request: only Retry-After makes it the service's own refusal.
  if (status === 503) return hasRetryAfter ? 'release' : 'unknown';
  return status === 502 || status === 504 ? 'unknown' : 'release';
}
