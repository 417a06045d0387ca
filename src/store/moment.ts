/** A moment on both clocks: monotonic time stands still while a machine is suspended, wall time does not. */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export function now(): Moment {
  return { monotonicMs: performance.now(), wallMs: Date.now() };
}

/** By the clock that ran further: a step of the wall clock can only make it longer. */
export function elapsedMs(since: Moment, until: Moment = now()): number {
  return Math.max(until.monotonicMs - since.monotonicMs, until.wallMs - since.wallMs);
}
