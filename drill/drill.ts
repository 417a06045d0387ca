import type { Options } from './options.ts';
import type { Random } from './random.ts';
import type { Stage } from './stage.ts';

/**
 * `kept`, `broken`: a promise. `vacuous`: too little happened for the others to mean anything. `limit`: a loss that is
 * documented, and was shown.
 */
export interface Finding {
  readonly kind: 'kept' | 'broken' | 'vacuous' | 'limit';
  readonly promise: string;
  readonly evidence: string;
}

export interface Table {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export interface Outcome {
  readonly findings: readonly Finding[];
  readonly tables: readonly Table[];
  /** For the JSON file: every round, every figure. */
  readonly facts: Readonly<Record<string, unknown>>;
}

export interface Context {
  readonly stage: Stage;
  readonly options: Options;
  readonly random: Random;
  readonly say: (line: string) => void;
}

export interface Drill {
  readonly name: string;
  readonly about: string;
  /** What must be installed, and how; null: it can run. */
  readonly missing: () => string | null;
  readonly run: (context: Context) => Promise<Outcome>;
}

/** The rest is in the JSON file. */
const mostShown = 5;

/** `faults`: each names one thing that must not be. */
export function finding(promise: string, faults: readonly string[], evidence: string): Finding {
  if (faults.length === 0) return { kind: 'kept', promise, evidence };
  const different = [...new Set(faults)];
  const shown = [...different.slice(0, mostShown), ...(different.length > mostShown ? ['…'] : [])];
  return { kind: 'broken', promise, evidence: `${faults.length} × ${shown.join('; ')}` };
}

/** `leastAnswered`: of all calls such a share must have been answered by an execution or a replay, or nothing was tried. */
export function notVacuous(
  answered: number,
  calls: number,
  more: readonly string[] = [],
  leastAnswered = 0.5,
): Finding {
  const share = calls === 0 ? 0 : answered / calls;
  const evidence = `${answered} of ${calls} calls answered by an execution or a replay`;
  const reasons = share < leastAnswered ? [evidence, ...more] : more;
  const promise = 'something was tried';
  if (reasons.length === 0) return { kind: 'kept', promise, evidence };
  return { kind: 'vacuous', promise, evidence: reasons.join('; ') };
}
