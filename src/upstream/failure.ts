import type { Ending } from '../core/settle.ts';

/** Faults found in this room; every other error in an Ending is undici's or the system's own. */
export type UpstreamFaultCode =
  | 'timed_out'
  | 'start_refused'
  | 'no_room'
  | 'started_twice'
  | 'status_invalid'
  | 'head_too_large'
  | 'answer_cut'
  | 'sink_failed'
  | 'client_closed';

export class UpstreamFault extends Error {
  readonly code: UpstreamFaultCode;

  constructor(code: UpstreamFaultCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'UpstreamFault';
    this.code = code;
  }
}

/**
 * The verdict of every failure hangs on one fact: did request-start happen? Error codes prove nothing: ECONNRESET comes
 * with zero bytes at the upstream and with the whole request received (FACTS.md).
 */
export function endingOfFailure(started: boolean, status: number | null, error: Error): Ending {
  if (!started) return { kind: 'not_started', error };
  const timedOut = error instanceof UpstreamFault && error.code === 'timed_out';
  return { kind: 'broken', status, timedOut, error };
}
