import type { MetricsJson } from '../telemetry/metrics.ts';

/** Names a worker's series in the metrics; in its place comes another of the same number. */
export const workerVariable = 'ONCEGATE_WORKER';

/** A worker has ended: why it said itself, on standard error. */
export class WorkerEnded extends Error {
  readonly exitCode: number;

  constructor(exitCode: number) {
    super(`a worker ended with ${exitCode}`);
    this.exitCode = exitCode;
  }
}

/** What the first process asks its workers, and what they say, over Node's own channel between them. */
export interface Answers {
  readonly readiness: string | null;
  readonly metrics: MetricsJson;
}

export interface Question {
  readonly question: number;
  readonly about: keyof Answers;
}

/** The first process's word to drain. Signals mean nothing to a worker: those of its process group and of its terminal reach both. */
export interface Order {
  readonly drain: NodeJS.Signals;
}

export type Said =
  | { readonly kind: 'serving'; readonly dataUrl: string }
  | { readonly kind: 'answer'; readonly question: number; readonly answer: Answers[keyof Answers] };
